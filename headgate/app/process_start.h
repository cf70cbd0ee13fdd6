// Prepares the process of every command: the signals and streams that all commands need alike.
#pragma once

namespace headgate::app {

// If a file may not grow (`ulimit -f`), the write fails, and the process does not end. If a
// standard stream is closed, no other file gets its number: otherwise output to the stream would go
// into that file. Writing to the closed stream stays an error. Call it first.
void PrepareProcess();

}  // namespace headgate::app
