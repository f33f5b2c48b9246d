//! The origins of pages that may call the server from a browser.

use std::sync::Arc;

/// Origins as browsers write them: `https://` or `http://`, a host in small letters, and a port unless it is the usual one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WebOrigins(Arc<[String]>);

impl WebOrigins {
    /// The list of these texts, unless one of them is no origin.
    #[must_use]
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let origins = texts.into_iter().map(|text| is_origin(text).then(|| text.to_owned()));
        Some(Self(origins.collect::<Option<_>>()?))
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this is one of them. They are compared byte for byte.
    #[must_use]
    pub fn has(&self, origin: &[u8]) -> bool {
        self.0.iter().any(|known| known.as_bytes() == origin)
    }

    /// The origins, in their order.
    #[must_use]
    pub fn list(&self) -> &[String] {
        &self.0
    }
}

fn is_origin(text: &str) -> bool {
    let Some((scheme @ ("http" | "https"), authority)) = text.split_once("://") else { return false };
    let (host, port) = match authority.rsplit_once(':') {
        // An address of IPv6 is in brackets.
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let usual = if scheme == "http" { 80 } else { 443 };
    let has_port = port.is_none_or(|port| {
        port.parse::<u16>().is_ok_and(|number| number != usual && number > 0 && number.to_string() == port)
    });
    let name = |host: &str| {
        host.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_')) && !host.is_empty()
    };
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    has_port && address.map_or_else(|| name(host), |address| address.parse::<std::net::Ipv6Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_browser_sends_is_an_origin() {
        for good in ["https://review.example", "http://localhost:5173", "http://127.0.0.1:1", "http://[::1]:8080"] {
            assert!(is_origin(good), "{good}");
        }
        for wrong in [
            "*",
            "null",
            "review.example",
            "https://",
            "https://*.example",
            "https://Review.example",
            "https://review.example/",
            "https://review.example:443",
            "http://review.example:80",
            "https://review.example:0",
            "https://review.example:080",
            "https://user@review.example",
            "https://[::1",
            "file://",
        ] {
            assert!(!is_origin(wrong), "{wrong}");
        }
        let two = WebOrigins::parse(["https://a.example", "https://b.example"]).unwrap();
        assert!(two.has(b"https://b.example") && !two.has(b"https://b.example.evil.example"));
        assert!(WebOrigins::parse(["https://a.example", "*"]).is_none());
    }
}
