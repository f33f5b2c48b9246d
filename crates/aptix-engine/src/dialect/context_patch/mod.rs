//! A context patch on a real file: chunks found in the file as it is, each below the one before, and made at once.
//!
//! Lines that stay keep their bytes; added lines end like those around them, and the end of the file stays as it was.

mod check;
mod made;
mod place;
mod plan;
mod spot;

pub(crate) use check::check;
pub(crate) use plan::plan;
