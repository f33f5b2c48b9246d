//! The links of the review pages that run beside a root, in its owner-only state: `aptix review` shows them, whatever became of the
//! output of the process that has the page.

use std::time::Duration;

use crate::workspace::roots::lock::Lock;
use crate::workspace::roots::state::{StateDir, StateError};

/// Pages beside one root whose links are kept; further ones show theirs by themselves alone.
const PAGES: usize = 16;
/// Most bytes of a link.
const BYTES: usize = 256;

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
                Ok(lock) => return Ok(Some(ReviewLink(lock))),
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
        if !self.exists() {
            return Ok(links);
        }
        for page in 0..PAGES {
            let path = self.path().join(name(page));
            if !path.exists() {
                break;
            }
            // A place that can be taken is that of a page which has ended.
            if let Err(StateError::Busy(_)) = self.lock(&name(page), Duration::ZERO) {
                let link = std::fs::read_to_string(&path);
                let link = link.map_err(|source| StateError::System { path: path.clone(), source })?;
                links.extend(link.strip_suffix('\n').filter(|link| link.len() < BYTES).map(str::to_owned));
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
        self.0.sign(format!("{link}\n").as_bytes())
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
        assert_eq!(state.review_links().unwrap(), ["http://127.0.0.1:2/?token=2"]);
        let again = state.keep_review_link().unwrap().unwrap();
        assert_eq!(state.review_links().unwrap().len(), 1, "the link of the page that ended is not that of this one");
        drop((other, again));
        let all: Vec<_> = (0..PAGES).map(|_| state.keep_review_link().unwrap().unwrap()).collect();
        assert!(state.keep_review_link().unwrap().is_none());
        drop(all);
    }
}
