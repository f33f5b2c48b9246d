//! Which files a search is about, by patterns as in `.gitignore`.

use aptix_model::failure::Failure;
use aptix_model::live::GLOBS;
use aptix_model::reason::Reason;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Bytes of one pattern.
const GLOB_BYTES: usize = 2048;

/// The patterns of a search, the last one first. The last one that matches a file, or a directory that it is in, decides.
pub(super) struct Globs(Vec<Gitignore>);

impl Globs {
    /// Reads patterns; none select every file.
    ///
    /// # Errors
    /// There are too many, or one is too long or cannot be understood.
    pub(super) fn new(written: &[String]) -> Result<Self, Failure> {
        let refused = |reason, message: String, field: String| {
            Failure::new(reason, message).field(field).hint(
                "write *.rs for names at any depth, /src/**/*.rs for paths from the root down, !*.min.js to take out",
            )
        };
        if written.len() > GLOBS {
            let message = format!("there are {} globs, at most {GLOBS} are searched with", written.len());
            return Err(refused(Reason::TooLarge, message, "globs".to_owned()));
        }
        let mut globs = Vec::with_capacity(written.len());
        for (index, glob) in written.iter().enumerate() {
            let field = format!("globs[{index}]");
            if glob.len() > GLOB_BYTES {
                let message = format!("a glob has {} bytes, at most {GLOB_BYTES} are searched with", glob.len());
                return Err(refused(Reason::TooLarge, message, field));
            }
            let mut builder = GitignoreBuilder::new(".");
            // Otherwise it would match nothing, and the search would seem to have found nothing.
            builder.allow_unclosed_class(false);
            let built = match builder.add_line(None, glob).and_then(|builder| builder.build()) {
                Ok(built) if built.is_empty() => Err("it names nothing".to_owned()),
                built => built.map_err(|error| error.to_string()),
            };
            let built = built.map_err(|why| {
                refused(Reason::InvalidRequest, format!("the glob {glob:?} cannot be understood: {why}"), field)
            })?;
            globs.push(built);
        }
        globs.reverse();
        Ok(Self(globs))
    }

    /// Whether the file at a path in its root is one of those that are searched.
    pub(super) fn select(&self, path: &str) -> bool {
        let decision = self.0.iter().find_map(|glob| match glob.matched_path_or_any_parents(path, false) {
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
            Match::None => None,
        });
        // Patterns that only take out take out of all files.
        decision.unwrap_or_else(|| self.0.iter().all(|glob| glob.num_ignores() == 0))
    }
}
