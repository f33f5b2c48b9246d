//! The links of the review pages that run beside a root, in its owner-only state: `aptix review` shows them, whatever became of the
//! output of the process that has the page.

use std::fs::TryLockError;
use std::io::{ErrorKind, Read as _};
use std::time::Duration;

use crate::workspace::roots::lock::Lock;
use crate::workspace::roots::state::{StateDir, StateError};

/// Pages beside one root whose links are kept; further ones show theirs by themselves alone.
const PAGES: usize = 16;
/// Most bytes of a link.
const BYTES: u64 = 256;

/// The link of a page that runs. Dropped, or when the process ends in any other way, there is no such link any more.
#[derive(Debug)]
pub(crate) struct ReviewLink(Lock);

impl StateDir {
    /// A place for the link of a page; nothing where all are taken.
    ///
    /// # Errors
    /// When the state directory cannot be used.
    pub(crate) fn keep_review_link(&self) -> Result<Option<ReviewLink>, StateError> {
        for page in 0..PAGES {
            match self.lock(&name(page), Duration::ZERO) {
                Ok(lock) => {
                    let link = ReviewLink(lock);
                    // The one before may have been killed.
                    let path = self.path().join(name(page));
                    link.0.set_text(b"").map_err(|source| StateError::System { path, source })?;
                    return Ok(Some(link));
                }
                Err(StateError::Busy(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The links of the pages that run, which have been used by nobody.
    ///
    /// # Errors
    /// When the state directory cannot be used.
    pub(crate) fn review_links(&self) -> Result<Vec<String>, StateError> {
        let mut links = Vec::new();
        for page in 0..PAGES {
            let path = self.path().join(name(page));
            let system = |source| StateError::System { path: path.clone(), source };
            let file = match std::fs::File::open(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                opened => opened.map_err(system)?,
            };
            // Other readers share the lock; only a page that runs has it alone.
            match file.try_lock_shared() {
                Ok(()) => {}
                Err(TryLockError::Error(source)) => return Err(system(source)),
                Err(TryLockError::WouldBlock) => {
                    let mut link = String::new();
                    file.take(BYTES).read_to_string(&mut link).map_err(system)?;
                    links.extend(link.strip_suffix('\n').map(str::to_owned));
                }
            }
        }
        Ok(links)
    }
}

impl ReviewLink {
    /// Keeps a link in the place of the one before.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn set(&self, link: &str) -> Result<(), std::io::Error> {
        self.0.set_text(format!("{link}\n").as_bytes())
    }
}

fn name(page: usize) -> String {
    format!("review-{page}.lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_there_as_long_as_its_page() {
        let place = tempfile::tempdir().unwrap();
        let state = StateDir::of_root(place.path(), place.path());
        assert_eq!(state.review_links().unwrap(), [""; 0]);
        let [one, other] = [(); 2].map(|()| state.keep_review_link().unwrap().unwrap());
        assert_eq!(state.review_links().unwrap(), [""; 0], "there is no link yet");
        one.set("http://127.0.0.1:1/?token=long").unwrap();
        one.set("http://127.0.0.1:1/?token=1").unwrap();
        other.set("http://127.0.0.1:2/?token=2").unwrap();
        assert_eq!(state.review_links().unwrap(), ["http://127.0.0.1:1/?token=1", "http://127.0.0.1:2/?token=2"]);
        drop(one);
        let ended = std::fs::File::open(state.path().join(name(0))).unwrap();
        ended.lock_shared().unwrap();
        assert_eq!(state.review_links().unwrap(), ["http://127.0.0.1:2/?token=2"], "another reader is no page");
        drop(ended);
        let again = state.keep_review_link().unwrap().unwrap();
        assert_eq!(state.review_links().unwrap().len(), 1, "the link of the page that ended is not that of this one");
        drop((other, again));
        let all: Vec<_> = (0..PAGES).map(|_| state.keep_review_link().unwrap().unwrap()).collect();
        assert!(state.keep_review_link().unwrap().is_none());
        drop(all);
    }
}
