//! The settings of planning: limits, what policy allows, and the clipboards of a session.

use aptix_model::limits::Limits;

use crate::planning::clipboards::Clipboards;

/// The settings of planning.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// How large anything may be.
    pub limits: Limits,
    /// Whether old text may differ from the file in white space.
    pub recovers: bool,
    /// Whether a first occurrence is refused where there are several.
    pub refuses_several: bool,
    /// What becomes of new text that does not look like the content of a file.
    pub suspicion: Suspicion,
    /// The clipboards of the author's session.
    pub clipboards: &'a Clipboards,
}

impl Settings<'_> {
    /// The defaults, in a session without clipboards.
    pub const DEFAULT: Settings<'static> = Settings {
        limits: Limits::DEFAULT,
        recovers: true,
        refuses_several: false,
        suspicion: Suspicion::Refuse,
        clipboards: &NO_CLIPBOARDS,
    };
}

/// What becomes of new text that does not look like the content of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Suspicion {
    /// It is written without a word.
    Off,
    /// It is written, with a warning.
    Warn,
    /// It is refused.
    Refuse,
}

static NO_CLIPBOARDS: Clipboards = Clipboards::new();
