// The precompiled headers hang on this file.
