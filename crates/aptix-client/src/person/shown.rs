//! What a person is shown before a batch is written.

use std::fmt::Write as _;

use aptix_model::failure::Visible;

use crate::cli::diff::{Paths, show_diff};
use crate::proposal::{Need, Proposal};

/// The whole change, file by file, with nothing in it that could steer a terminal.
pub(super) fn about(name: &str, proposal: &Proposal<'_>, paths: Paths) -> String {
    let Proposal { batch, plan, .. } = proposal;
    let label = batch.label.as_deref().unwrap_or("(no label)");
    let mut text = format!("\n{name}: {}\n", Visible(label));
    for file in &plan.files {
        if paths == Paths::WithRoot {
            let _ = writeln!(text, "{}:", Visible(&paths.name(file.path.as_str(), file.doc_path)));
        }
        show_diff(&mut text, &String::from_utf8_lossy(&file.diff(usize::MAX).unwrap_or_default()));
    }
    for ((file, patch), need) in plan.files.iter().zip(&batch.files).zip(&proposal.needs) {
        let _ = write!(text, "{} {}", file.status.word(), Visible(&paths.name(file.path.as_str(), file.doc_path)));
        let _ = match &patch.label {
            Some(label) => writeln!(text, ": {}", Visible(label)),
            None => writeln!(text),
        };
        if let Need::Ask(ask) = need {
            let _ = writeln!(text, "  attention: {}", Visible(&ask.to_string()));
        }
    }
    text
}
