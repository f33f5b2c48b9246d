//! File names as the most forgiving file systems compare them: case folded, without the characters that HFS+ ignores,
//! without trailing dots, blanks and streams, and with the short names that NTFS generates.

use alloc::string::String;
use alloc::vec::Vec;

use crate::path::fold;

/// The canonical names of a path, valid or not; both `/` and `\` separate them.
pub(super) fn canonical_names(path: &str) -> Vec<String> {
    path.split(['/', '\\']).map(canonical_name).filter(|name| !name.is_empty()).collect()
}

/// A name as HFS+ and NTFS compare it.
pub(super) fn canonical_name(name: &str) -> String {
    fold(&visible_name(name))
}

/// A name in its own case, without the stream it may name and without what HFS+ and NTFS pass over.
pub(super) fn visible_name(name: &str) -> String {
    let name = name.split_once(':').map_or(name, |(name, _stream)| name);
    let mut kept: String = name.chars().filter(|character| !is_ignored_by_hfs(*character)).collect();
    kept.truncate(kept.trim_end_matches(['.', ' ']).len());
    kept
}

const fn is_ignored_by_hfs(character: char) -> bool {
    matches!(character, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// Whether NTFS may have generated a name for a known one: `vscode~1`, or `vs1a2b~1` after four such names are taken.
pub(super) fn is_short_for(name: &str, known: &str) -> bool {
    let Some(short) = ShortName::parse(name) else { return false };
    let long = known.trim_start_matches('.');
    let long = long.rsplit_once('.').map_or(long, |(long, _extension)| long);
    let mut characters = long.chars().filter(|character| *character != '.');
    let first_six: String = characters.by_ref().take(6).collect();
    short.stem == first_six || first_six.get(..2).and_then(|two| short.stem.strip_prefix(two)).is_some_and(is_hash)
}

/// A generated name, taken apart: `creden~1.jso`.
pub(super) struct ShortName<'n> {
    /// What precedes the tilde.
    pub(super) stem: &'n str,
    /// At most three characters, `""` without a dot.
    pub(super) extension: &'n str,
}

impl<'n> ShortName<'n> {
    /// `None` for a name that NTFS does not generate.
    pub(super) fn parse(name: &'n str) -> Option<Self> {
        let (stem, rest) = name.split_once('~')?;
        let (number, extension) = rest.split_once('.').unwrap_or((rest, ""));
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        (is_number && extension.len() <= 3).then_some(Self { stem, extension })
    }
}

/// Whether this is the hash that NTFS puts after the first two characters.
pub(super) fn is_hash(text: &str) -> bool {
    text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
