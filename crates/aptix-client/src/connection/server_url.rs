//! Where a server listens.

use std::str::FromStr;

use tonic::transport::Uri;

/// Where a server listens: `http://host:port`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerUrl(pub(super) Uri);

/// Why a text names no server.
#[derive(Debug, thiserror::Error)]
#[error("{text:?} is not a server's address, expected http://HOST:PORT")]
pub struct ServerUrlError {
    text: String,
}

impl FromStr for ServerUrl {
    type Err = ServerUrlError;

    fn from_str(text: &str) -> Result<Self, ServerUrlError> {
        let error = || ServerUrlError { text: text.to_owned() };
        let uri: Uri = text.parse().map_err(|_| error())?;
        let plain = uri.scheme_str() == Some("http") && matches!(uri.path(), "" | "/") && uri.query().is_none();
        if plain && uri.host().is_some_and(|host| !host.is_empty()) { Ok(Self(uri)) } else { Err(error()) }
    }
}

impl std::fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "http://{}", self.0.authority().map_or("", |authority| authority.as_str()))
    }
}
