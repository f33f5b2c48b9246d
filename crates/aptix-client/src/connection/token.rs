//! What proves to a server who calls.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use aptix_model::failure::Failure;
use tonic::metadata::AsciiMetadataValue;
use tonic::service::Interceptor;
use tonic::{Request, Status};

use super::route::Route;
use super::server_url::ServerUrl;
use super::trust::Trust;

/// A token, as its holder sends it. It is never printed.
#[derive(Clone)]
pub struct Token {
    text: String,
    header: AsciiMetadataValue,
}

/// Why a text is no token. It does not say the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "expected a token, which is one word of visible ASCII characters, found something else ({characters} characters)"
)]
pub struct TokenError {
    characters: usize,
}

impl FromStr for Token {
    type Err = TokenError;

    /// White space around it is left out: files end with a line break.
    fn from_str(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        let error = TokenError { characters: text.chars().count() };
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(error);
        }
        let mut header = AsciiMetadataValue::try_from(format!("Bearer {text}")).map_err(|_| error)?;
        header.set_sensitive(true);
        Ok(Self { text: text.to_owned(), header })
    }
}

impl Token {
    /// The text, to be kept in a file that its owner alone reads.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token")
    }
}

/// Where the token for a server comes from. It is asked for each connection, so that a token that was replaced is used.
pub trait Credentials: fmt::Debug + Send + Sync {
    /// The token; `None` if none is sent.
    ///
    /// # Errors
    /// Why the token that there should be cannot be had.
    fn token(&self) -> Result<Option<Token>, Failure>;
}

/// No token.
#[derive(Clone, Copy, Debug)]
pub struct NoToken;

impl Credentials for NoToken {
    fn token(&self) -> Result<Option<Token>, Failure> {
        Ok(None)
    }
}

/// A server, and what proves to it who calls.
#[derive(Clone, Debug)]
pub struct Server {
    /// Where it listens.
    pub url: ServerUrl,
    /// Where the token for it comes from.
    pub credentials: Arc<dyn Credentials>,
    /// How bytes reach it.
    pub route: Route,
    /// How it proves who it is, and this side beside the token.
    pub trust: Trust,
}

impl Server {
    /// A server that is called without a token. With TLS, the system's authorities are trusted.
    #[must_use]
    pub fn open(url: ServerUrl) -> Self {
        Self::new(url, Arc::new(NoToken))
    }

    /// A server that is reached over TCP.
    #[must_use]
    pub fn new(url: ServerUrl, credentials: Arc<dyn Credentials>) -> Self {
        Self { url, credentials, route: Route::Tcp, trust: Trust::default() }
    }
}

/// Sends a token, if there is one, with each call.
#[derive(Clone, Debug)]
pub(super) struct Bearer(pub(super) Option<Token>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.header.clone());
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_word_and_is_never_printed() {
        let token: Token = " aptix_0123\n".parse().unwrap();
        assert_eq!(token.reveal(), "aptix_0123");
        assert_eq!(format!("{token:?}"), "a token");
        for text in ["", " \n", "a b", "a\nb", "\u{e9}", "a\u{7f}"] {
            let error = text.parse::<Token>().unwrap_err();
            assert!(text.trim().is_empty() || !error.to_string().contains(text), "{error}");
        }
    }
}
