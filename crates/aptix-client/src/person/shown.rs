//! A change as a person is shown it: all of it, with nothing in it that could steer a terminal or hide.

use std::fmt::Write as _;

use aptix_engine::file_plan::FilePlan;
use aptix_model::failure::Visible;
use aptix_model::report::FileStatus;

use super::dialog::{Shown, ShownFile};
use crate::cli::diff::{Paths, show_diff};
use crate::proposal::{Ask, Need, Proposal};

/// Everything there is to see of a proposal.
pub(super) fn shown(name: &str, proposal: &Proposal<'_>, paths: Paths) -> Shown {
    let Proposal { batch, plan, .. } = proposal;
    let label = batch.label.as_deref().unwrap_or("(no label)");
    let mut shown = Shown { head: format!("\n{name}: {}\n", Visible(label)), ..Shown::default() };
    for (index, ((file, patch), need)) in plan.files.iter().zip(&batch.files).zip(&proposal.needs).enumerate() {
        let name = Visible(&paths.name(file.path.as_str(), file.doc_path)).to_string();
        let _ = write!(shown.summary, "{} {name}", file.status.word());
        if let Some(to) = file.moved_to {
            let _ = write!(shown.summary, " to {}", Visible(to.as_str()));
        }
        if let Some(executable) = file.executable {
            let _ = write!(shown.summary, " ({})", if executable { "can be executed" } else { "cannot be executed" });
        }
        let _ = match &patch.label {
            Some(label) => writeln!(shown.summary, ": {}", Visible(label)),
            None => writeln!(shown.summary),
        };
        if let Need::Ask(ask) = need {
            let _ = writeln!(shown.summary, "  attention: {}", Visible(&ask.to_string()));
        }
        if file.status != FileStatus::Unchanged {
            let text = text(&name, file, paths);
            let can_be_allowed = !matches!(need, Need::Ask(Ask::Listed(_)));
            shown.files.push(ShownFile { index, target: patch.target.as_str().to_owned(), name, text, can_be_allowed });
        }
    }
    shown
}

fn text(name: &str, file: &FilePlan<'_>, paths: Paths) -> String {
    let mut text = String::new();
    if paths == Paths::WithRoot {
        let _ = writeln!(text, "{name}:");
    }
    show_diff(&mut text, &String::from_utf8_lossy(&file.diff(usize::MAX).unwrap_or_default()));
    text
}
