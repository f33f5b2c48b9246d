//! Names of a diff that can be read in several ways.

use alloc::string::String;
use alloc::vec::Vec;

/// The paths that the names of a diff's file may mean: one list for each reading of the whole diff. A list has one path, or
/// two where the two sides of the file have different names; of two, the one that exists is meant.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PathReadings {
    /// The paths if `a/` and `b/` in front of the names are prefixes.
    pub stripped: Vec<String>,
    /// The paths if the names are written as they are.
    pub written: Vec<String>,
}

impl PathReadings {
    /// Every path that may be meant, those without prefixes first.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.stripped.iter().chain(&self.written).map(String::as_str)
    }
}
