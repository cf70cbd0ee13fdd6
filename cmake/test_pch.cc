// The precompiled header of the tests hangs on this file.
