//! Who may use the page: whoever opened a link that the program showed, in the browser that did so.
//!
//! A link is good once. The browser gets a cookie for it, which no script can read and no other site can have sent. What
//! changes something has to come from the page itself.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use aptix_model::digest::Sha256Digest;
use axum::http::header::{COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, Method};
use sha2::{Digest as _, Sha256};

use crate::person::prompt::aside;
use crate::workspace::roots::review_link::ReviewLink;
use crate::workspace::roots::workspace::Workspace;

/// Browsers that may use the page at one time; of more, those that came first may not any more.
const BROWSERS: usize = 8;
/// Bytes of a secret.
const SECRET: usize = 32;

/// Where a browser says that a request comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The door of one page.
#[derive(Debug)]
pub(super) struct Door {
    address: SocketAddr,
    secrets: Mutex<Secrets>,
    /// Where the newest link is kept, for `aptix review`.
    kept: Mutex<Vec<ReviewLink>>,
}

#[derive(Debug, Default)]
struct Secrets {
    /// The digest of the secret in the link that was not used yet.
    link: Option<Sha256Digest>,
    /// The digests of the secrets that browsers have.
    browsers: VecDeque<Sha256Digest>,
}

/// Why a request is not answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum Closed {
    #[error("this address is not the one of the page")]
    OtherHost,
    #[error("another site asks for this")]
    OtherSite,
    #[error(
        "this browser has not opened the page yet, or the program was started anew: open the link that `aptix review` prints"
    )]
    NoCookie,
}

impl Door {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self { address, secrets: Mutex::default(), kept: Mutex::default() }
    }

    /// From now on links are kept beside the roots of a workspace. Blocks.
    pub(super) fn keep_links(&self, workspace: &Workspace) {
        let places = workspace.roots().iter().filter_map(|root| {
            root.state().keep_review_link().unwrap_or_else(|error| {
                tracing::warn!(%error, "`aptix review` does not find this page");
                None
            })
        });
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = places.collect();
    }

    /// Shows the person a new link, and keeps it. Blocks.
    pub(super) fn announce(&self, what: &str) {
        // Held meanwhile: the link that is kept is the newest.
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match self.link() {
            Ok(link) => {
                for error in kept.iter().filter_map(|kept| kept.set(&link).err()) {
                    tracing::warn!(%error, "the link of the review page is not kept");
                }
                aside(&format!("{what}: {link}\n"));
            }
            Err(error) => tracing::error!(%error, "no link to the review page can be made"),
        }
    }

    /// A new link. The one before is good for nothing any more.
    fn link(&self) -> Result<String, getrandom::Error> {
        let secret = secret()?;
        self.with(|secrets| secrets.link = Some(digest(&secret)));
        Ok(format!("http://{}/?token={secret}", self.address))
    }

    /// Takes the secret of a link: the cookie for the browser that has it, or nothing if it is not the one that is good.
    pub(super) fn exchange(&self, token: &str) -> Option<String> {
        let cookie = secret().ok()?;
        self.with(|secrets| {
            secrets.link.take_if(|link| *link == digest(token))?;
            secrets.browsers.push_front(digest(&cookie));
            secrets.browsers.truncate(BROWSERS);
            Some(())
        })?;
        Some(format!("{}={cookie}; Path=/; HttpOnly; SameSite=Strict", self.cookie()))
    }

    /// How many browsers opened the page.
    pub(super) fn browsers(&self) -> usize {
        self.with(|secrets| secrets.browsers.len())
    }

    /// Whether a request may be answered: it names this page, comes from no other site and, unless it brings a link, from a
    /// browser that opened one.
    pub(super) fn admit(&self, method: &Method, headers: &HeaderMap, brings_link: bool) -> Result<(), Closed> {
        let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let host = text(HOST).filter(|host| self.is_ours(host)).ok_or(Closed::OtherHost)?;
        let is_read = method == Method::GET || method == Method::HEAD;
        let origin = headers.contains_key(ORIGIN);
        let is_own = text(ORIGIN).is_some_and(|origin| origin.strip_prefix("http://") == Some(host));
        // An old browser does not say where a request comes from, except for one that changes something.
        let is_near = match text(FETCH_SITE) {
            None => true,
            Some("same-origin") => true,
            Some("none") => is_read,
            // A link that was clicked on another page brings its secret and is given nothing that this page could read.
            Some(_) => is_read && brings_link,
        };
        if !is_near || (origin && !is_own) || (!is_read && !is_own) {
            return Err(Closed::OtherSite);
        }
        if brings_link || self.has_cookie(headers) { Ok(()) } else { Err(Closed::NoCookie) }
    }

    fn is_ours(&self, host: &str) -> bool {
        let port = self.address.port();
        host == self.address.to_string() || host == format!("localhost:{port}")
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie();
        let pairs = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = pairs.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(key, value)| {
            key == name && self.with(|secrets| secrets.browsers.iter().any(|browser| *browser == digest(value)))
        })
    }

    /// Cookies do not distinguish ports.
    fn cookie(&self) -> String {
        format!("aptix-review-{}", self.address.port())
    }

    fn with<T>(&self, access: impl FnOnce(&mut Secrets) -> T) -> T {
        access(&mut self.secrets.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Secrets are compared by their digests: how long that takes says nothing about them.
fn digest(secret: &str) -> Sha256Digest {
    Sha256Digest::from_bytes(Sha256::digest(secret).into())
}

fn secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0; SECRET];
    getrandom::fill(&mut bytes)?;
    Ok(Sha256Digest::from_bytes(bytes).to_string())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn door() -> Door {
        Door::new("127.0.0.1:7430".parse().unwrap())
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    fn token(door: &Door) -> String {
        door.link().unwrap().split_once("token=").unwrap().1.to_owned()
    }

    #[test]
    fn a_link_is_good_once_and_until_there_is_a_newer_one() {
        let door = door();
        let (old, new) = (token(&door), token(&door));
        assert_eq!((old.len(), door.exchange(&old)), (64, None));
        let cookie = door.exchange(&new).unwrap();
        assert!(cookie.starts_with("aptix-review-7430=") && cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"));
        assert_eq!((door.exchange(&new), door.exchange("")), (None, None));
    }

    #[test]
    fn only_the_page_itself_in_a_browser_that_opened_it_is_answered() {
        let door = door();
        let cookie = door.exchange(&token(&door)).unwrap();
        let cookie = format!("other=1; {}", cookie.split_once(';').unwrap().0);
        let (host, own) = (("host", "127.0.0.1:7430"), ("origin", "http://127.0.0.1:7430"));
        let get = |pairs: &[_]| door.admit(&Method::GET, &headers(pairs), false);
        let post = |pairs: &[_]| door.admit(&Method::POST, &headers(pairs), false);
        let known = ("cookie", cookie.as_str());
        assert_eq!(get(&[host, known]), Ok(()));
        assert_eq!(get(&[("host", "localhost:7430"), known]), Ok(()));
        assert_eq!(post(&[host, known, own, ("sec-fetch-site", "same-origin")]), Ok(()));

        // A name that was made to lead here, another port, no name.
        for host in ["evil.example:7430", "127.0.0.1", "127.0.0.1:7431", "127.0.0.1:7430.evil.example"] {
            assert_eq!(get(&[("host", host), known]), Err(Closed::OtherHost), "{host}");
        }
        assert_eq!(get(&[known]), Err(Closed::OtherHost));
        // Another site, also one on another port of this machine.
        for origin in ["http://evil.example", "http://127.0.0.1:7431", "https://127.0.0.1:7430", "null", ""] {
            assert_eq!(post(&[host, known, ("origin", origin)]), Err(Closed::OtherSite), "{origin}");
            assert_eq!(get(&[host, known, ("origin", origin)]), Err(Closed::OtherSite), "{origin}");
        }
        for site in ["cross-site", "same-site"] {
            assert_eq!(get(&[host, known, ("sec-fetch-site", site)]), Err(Closed::OtherSite), "{site}");
            assert_eq!(post(&[host, known, own, ("sec-fetch-site", site)]), Err(Closed::OtherSite), "{site}");
        }
        assert_eq!(post(&[host, known, own, ("sec-fetch-site", "none")]), Err(Closed::OtherSite));
        assert_eq!(post(&[host, known]), Err(Closed::OtherSite), "a request that changes something names its origin");
        // No browser of this page.
        for cookie in ["", "aptix-review-7430=", "aptix-review-7430=0", "aptix-review-7431=0"] {
            assert_eq!(get(&[host, ("cookie", cookie)]), Err(Closed::NoCookie), "{cookie}");
        }
        let other = Door::new("127.0.0.1:7430".parse().unwrap());
        assert_eq!(other.admit(&Method::GET, &headers(&[host, known]), false), Err(Closed::NoCookie));
    }

    #[test]
    fn so_many_browsers_may_use_the_page() {
        let door = door();
        let cookies: Vec<_> = (0..=BROWSERS).map(|_| door.exchange(&token(&door)).unwrap()).collect();
        let may = |cookie: &String| door.has_cookie(&headers(&[("cookie", cookie.split_once(';').unwrap().0)]));
        let may: Vec<_> = cookies.iter().map(may).collect();
        assert_eq!((may[0], may[1], may[BROWSERS]), (false, true, true));
    }
}
