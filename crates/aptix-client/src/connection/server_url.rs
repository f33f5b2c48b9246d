//! Where a server listens.

use std::net::IpAddr;
use std::str::FromStr;

use tonic::transport::Uri;

/// Where a server listens: `https://host:port`, or `http://host:port` without TLS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerUrl(pub(super) Uri);

/// Why a text names no server.
#[derive(Debug, thiserror::Error)]
pub enum ServerUrlError {
    /// It is something else.
    #[error("{text:?} is not a server's address, expected https://HOST:PORT or http://HOST:PORT")]
    Misfit {
        /// The text.
        text: String,
    },
    /// It holds what may be a secret, so that it is not repeated here.
    #[error(
        "a server's address has no name or password before an @, expected https://HOST:PORT; hint: keep a token with `aptix login`"
    )]
    Credentials,
}

impl ServerUrl {
    /// Whether it is reached by TLS.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }

    /// Whether it names this machine itself: by a loopback address, or as `localhost`.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let host = self.0.host().unwrap_or_default();
        let address: Result<IpAddr, _> = host.trim_matches(['[', ']']).parse();
        address.map_or(host.eq_ignore_ascii_case("localhost"), |address| address.to_canonical().is_loopback())
    }
}

impl FromStr for ServerUrl {
    type Err = ServerUrlError;

    fn from_str(text: &str) -> Result<Self, ServerUrlError> {
        if text.contains('@') {
            return Err(ServerUrlError::Credentials);
        }
        let error = || ServerUrlError::Misfit { text: text.to_owned() };
        let uri: Uri = text.parse().map_err(|_| error())?;
        let known = matches!(uri.scheme_str(), Some("http" | "https"));
        let plain = known && matches!(uri.path(), "" | "/") && uri.query().is_none();
        if plain && uri.host().is_some_and(|host| !host.is_empty()) { Ok(Self(uri)) } else { Err(error()) }
    }
}

impl std::fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let authority = self.0.authority().map_or("", |authority| authority.as_str());
        write!(f, "{}://{authority}", self.0.scheme_str().unwrap_or("http"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_and_localhost_are_this_machine() {
        for (text, is_loopback) in [
            ("http://127.0.0.1:1", true),
            ("http://127.9.9.9:1", true),
            ("http://[::1]:1", true),
            ("http://[::ffff:127.0.0.1]:1", true),
            ("http://LocalHost:1", true),
            ("http://0.0.0.0:1", false),
            ("http://10.0.0.1:1", false),
            ("http://localhost.example:1", false),
            ("http://127.0.0.1.example:1", false),
        ] {
            assert_eq!(text.parse::<ServerUrl>().unwrap().is_loopback(), is_loopback, "{text}");
        }
        let url: ServerUrl = "https://example:1/".parse().unwrap();
        assert!(url.is_secure() && url.to_string() == "https://example:1");
        for text in ["https://secret@a:1", "https://user:secret@a:1", "secret@a"] {
            assert!(!text.parse::<ServerUrl>().unwrap_err().to_string().contains("secret"), "{text}");
        }
        for text in ["ftp://a:1", "https://", "a:1", "https://a:1/b", "https://a:1?b"] {
            assert!(text.parse::<ServerUrl>().is_err(), "{text}");
        }
    }
}
