//! What Aptix keeps for itself about a root, one level above the disk.

pub(super) mod own_file;
