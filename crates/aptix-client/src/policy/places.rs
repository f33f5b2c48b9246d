//! Absolute paths of this machine, which belong into no answer that leaves it or that a model reads.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use aptix_model::failure::Failure;
use aptix_model::report::Report;

/// The paths that a message may hold, and what replaces each in a message that leaves the machine.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// As they are displayed and as they are quoted, the longest first: one may lie in another.
    known: Vec<(String, String)>,
}

impl Places {
    /// Knows these paths, each with what it is called instead.
    #[must_use]
    pub fn new(places: impl IntoIterator<Item = (PathBuf, String)>) -> Self {
        let mut known: Vec<_> =
            places.into_iter().flat_map(|(path, name)| forms(&path).map(|form| (form, name.clone()))).collect();
        known.retain(|(path, _)| path.len() > 1);
        known.sort_by_key(|(path, _)| Reverse(path.len()));
        known.dedup();
        Self { known }
    }

    /// Names the places in failures.
    pub fn name_in(&self, failures: &mut [Failure]) {
        for failure in failures {
            let texts =
                [Some(&mut failure.message), failure.hint.as_mut(), failure.path.as_mut(), failure.doc_path.as_mut()];
            texts.into_iter().flatten().for_each(|text| self.name(text));
        }
    }

    /// Names the places in what a report says about files.
    pub fn name_in_report(&self, report: &mut Report) {
        let of_files = report.files.iter_mut().flat_map(|file| &mut file.warnings);
        of_files.chain(&mut report.warnings).for_each(|warning| self.name(&mut warning.message));
        self.name_in(&mut report.failures);
    }

    /// Names the places in a text.
    pub fn name(&self, text: &mut String) {
        for (path, name) in &self.known {
            if text.contains(path.as_str()) {
                *text = text.replace(path.as_str(), name);
            }
        }
    }
}

fn forms(path: &Path) -> [String; 2] {
    let plain = path.display().to_string();
    let quoted = format!("{plain:?}");
    let quoted = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default().to_owned();
    [plain, quoted]
}

#[cfg(test)]
mod tests {
    use aptix_model::reason::Reason;

    use super::*;

    #[test]
    fn paths_of_the_machine_get_names_and_others_stay() {
        let places = Places::new([
            (PathBuf::from("/u/code"), "ws".to_owned()),
            (PathBuf::from("/u/state/aptix"), "(state)".to_owned()),
            (PathBuf::from("/u/state/aptix/roots/ab"), "(state)".to_owned()),
            (PathBuf::from("/odd\"name"), "odd".to_owned()),
            (PathBuf::from("/"), "top".to_owned()),
        ]);
        let message = "cannot write /u/state/aptix/roots/ab/outbox beside \"/odd\\\"name/x\" and src//u";
        let hint = "look into /u/code/src";
        let mut failures = [Failure::new(Reason::WriteFailed, message).hint(hint)];
        places.name_in(&mut failures);
        assert_eq!(failures[0].message, "cannot write (state)/outbox beside \"odd/x\" and src//u");
        assert_eq!(failures[0].hint.as_deref(), Some("look into ws/src"));
    }
}
