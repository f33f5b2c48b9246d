//! The place in a distributed trace that work belongs below: the `traceparent` of W3C Trace Context, version 00.

use alloc::string::String;
use core::fmt;

/// Characters of a `traceparent` of version 00.
const LENGTH: usize = 55;

/// A span of a distributed trace, by which the spans below it find their place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceParent {
    /// Names the trace; not 0.
    pub trace: u128,
    /// Names the span in it; not 0.
    pub span: u64,
    /// Whether the caller records the trace; the flags that are not defined are left out.
    pub is_sampled: bool,
}

impl TraceParent {
    /// Reads a `traceparent`; `None` if it is malformed. One of a later version is read as far as version 00 has its fields.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (head, rest) = text.split_at_checked(LENGTH)?;
        let mut fields = head.split('-');
        let mut field = |digits: usize| {
            let field = fields.next().filter(|field| field.len() == digits)?;
            let is_hex = field.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            u128::from_str_radix(field, 16).ok().filter(|_| is_hex)
        };
        let (version, trace, span, flags) = (field(2)?, field(32)?, field(16)?, field(2)?);
        let is_whole = if version == 0 { rest.is_empty() } else { rest.is_empty() || rest.starts_with('-') };
        if version == 0xff || trace == 0 || span == 0 || !is_whole {
            return None;
        }
        Some(Self { trace, span: u64::try_from(span).ok()?, is_sampled: flags & 1 == 1 })
    }

    /// Reads a `traceparent` in bytes, as they are in a header or a record; `None` if it is malformed.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Self::parse(core::str::from_utf8(bytes).ok()?)
    }

    /// Its text, or an empty text for none: as the protocol has it.
    #[must_use]
    pub fn text(parent: Option<Self>) -> String {
        parent.map(|parent| alloc::format!("{parent}")).unwrap_or_default()
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.is_sampled))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    const WHOLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_reads_back_as_it_was_written() {
        let parent = TraceParent::parse(WHOLE).unwrap();
        assert_eq!((parent.span, parent.is_sampled), (0x00f0_67aa_0ba9_02b7, true));
        assert_eq!(parent.to_string(), WHOLE);
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-fe-what-comes-later";
        let later = TraceParent::parse(later).unwrap();
        assert_eq!(later, TraceParent { is_sampled: false, ..parent });
        assert_eq!(TraceParent::parse(&later.to_string()), Some(later));
    }

    #[test]
    fn a_malformed_traceparent_is_none() {
        for wrong in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01more",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ä",
        ] {
            assert_eq!(TraceParent::parse(wrong), None, "{wrong}");
        }
        assert_eq!(TraceParent::from_bytes(b"\xff"), None);
    }
}
