//! The fixed sentences with which an author says that no safe edit can be made (FILE-SPEC 2.4, 3.2, 6).

/// How the sentence about patches begins, in lower case.
const NO_PATCH: &str = "a patch cannot be safely generated with the information provided";
/// How the sentence about git patches begins, in lower case.
const NO_GIT_PATCH: &str = "unable to generate a safe git patch";

/// Characters of a sentence that are repeated.
const SHOWN: usize = 200;

/// What an author declined to write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Declined {
    /// Any patch.
    Patch,
    /// A git patch; any other edit may replace it.
    GitPatch,
}

/// The first fixed sentence in a text with single blanks, and what it declines.
pub(super) fn find(prose: &str) -> Option<(Declined, &str)> {
    let lower = prose.to_ascii_lowercase();
    let found = |sentence, declined| Some((lower.find(sentence)?, declined));
    let (start, declined) = found(NO_PATCH, Declined::Patch).or_else(|| found(NO_GIT_PATCH, Declined::GitPatch))?;
    let rest = prose.get(start..)?;
    let end = rest.find(". ").map_or(rest.len(), |dot| dot + 1);
    let cut = rest.char_indices().nth(SHOWN).map_or(rest.len(), |(offset, _)| offset);
    Some((declined, rest.get(..end.min(cut))?.trim_end()))
}

/// Adds the words of a text, each with one blank behind it, to those in which [`find`] looks.
pub(super) fn add_words(all: &mut String, text: &str) {
    for word in text.split_whitespace() {
        all.push_str(word);
        all.push(' ');
    }
}
