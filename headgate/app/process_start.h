// Prepares the process of every command: the signals and streams that all commands need alike.
#pragma once

namespace headgate::app {

// A file that may not grow (`ulimit -f`) is an error of its write, and does not end the process. If
// a standard stream is closed, no other file gets its number: what is written to the stream would
// go into that file. Writing to the stream stays an error. Call it first.
void PrepareProcess();

}  // namespace headgate::app
