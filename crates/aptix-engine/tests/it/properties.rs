//! What holds for every file and every patch.
