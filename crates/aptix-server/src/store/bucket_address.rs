//! The address of a bucket that keeps blobs.

use std::fmt;

/// What addresses begin with.
const SCHEME: &str = "s3://";

/// A bucket of an S3-compatible store: `s3://BUCKET`, or `s3://BUCKET/PREFIX` for what is below a prefix. How it is reached, and as whom,
/// follows from the environment, as with other programs: from `AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID` and so on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BucketAddress {
    bucket: String,
    /// Its parts.
    prefix: Vec<String>,
}

/// Why a text is not the address of a bucket.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "expected a bucket, as in s3://BUCKET/PREFIX, with letters, digits, `-`, `.` and `_` in its name and in each part of the prefix, found `{0}`"
)]
pub struct BucketAddressError(String);

impl BucketAddress {
    /// Reads one.
    ///
    /// # Errors
    /// When the text is no such address.
    pub fn parse(text: &str) -> Result<Self, BucketAddressError> {
        let named = text.strip_prefix(SCHEME).map(|named| named.strip_suffix('/').unwrap_or(named));
        let mut parts = named.unwrap_or_default().split('/').map(str::to_owned);
        let address = Self { bucket: parts.next().unwrap_or_default(), prefix: parts.collect() };
        let is_name = |part: &String| {
            let is_plain = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
            is_plain && !["", ".", ".."].contains(&part.as_str())
        };
        let is_address = is_name(&address.bucket) && address.prefix.iter().all(is_name);
        if is_address { Ok(address) } else { Err(BucketAddressError(text.to_owned())) }
    }

    /// The name of the bucket.
    #[must_use]
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The parts of the prefix; none for the whole bucket.
    #[must_use]
    pub fn prefix(&self) -> &[String] {
        &self.prefix
    }
}

impl fmt::Display for BucketAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{SCHEME}{}", self.bucket)?;
        self.prefix.iter().try_for_each(|part| write!(out, "/{part}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_alike() {
        for (text, shown) in [("s3://b", "s3://b"), ("s3://b/", "s3://b"), ("s3://b.x/a/c-d_1/", "s3://b.x/a/c-d_1")] {
            assert_eq!(BucketAddress::parse(text).unwrap().to_string(), shown);
        }
        for text in ["", "b", "s3:b", "s3://", "s3:///a", "s3://b//a", "s3://b/../a", "s3://k:s@b/a", "s3://b/a?x=1"] {
            assert_eq!(BucketAddress::parse(text), Err(BucketAddressError(text.to_owned())));
        }
    }
}
