//! A bucket of an S3-compatible store, which has the bytes of blobs in the place of the database: an object for each chunk.
//!
//! An object is never changed, and no two writes make the same one: its name ends with a number that no other has. It begins with the
//! upload, so that who removes the upload finds every object of it, also one that no row names because its server died before.

#[cfg(not(feature = "s3"))]
mod none;
mod object;
#[cfg(feature = "s3")]
mod s3;

#[cfg(not(feature = "s3"))]
pub(super) use self::none::Bucket;
pub(super) use self::object::Object;
#[cfg(feature = "s3")]
pub(super) use self::s3::Bucket;
