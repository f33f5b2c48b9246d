//! A change as a person is shown it: all of it, with nothing in it that could steer a terminal or hide.

use std::fmt::Write as _;

use aptix_engine::file_plan::FilePlan;
use aptix_model::failure::Visible;
use aptix_model::report::FileStatus;

use super::dialog::{Shown, ShownFile};
use crate::cli::diff::{Paths, add_notes, show_diff};
use crate::proposal::{Ask, Need, Proposal};
use crate::workspace::resolve::Place;

/// Everything there is to see of a proposal.
pub(super) fn shown(name: &str, proposal: &Proposal<'_>, paths: Paths) -> Shown {
    let Proposal { batch, plan, .. } = proposal;
    let label = batch.label.as_deref().unwrap_or("(no label)");
    let mut shown = Shown { head: format!("\n{name}: {}\n", Visible(label)), ..Shown::default() };
    for (index, ((file, patch), need)) in plan.files.iter().zip(&batch.files).zip(&proposal.needs).enumerate() {
        let name = Visible(&paths.name(file.path.as_str(), file.doc_path)).to_string();
        let mut notes = format!("{} {name}", file.status.word());
        let (place, other) = proposal.places.get(index).copied().unzip();
        add_real(&mut notes, place);
        if let Some(to) = file.moved_to {
            let _ = write!(notes, " to {}", Visible(to.as_str()));
            add_real(&mut notes, other.flatten());
        }
        if let Some(executable) = file.executable {
            let _ = write!(notes, " ({})", if executable { "can be executed" } else { "cannot be executed" });
        }
        let _ = match &patch.label {
            Some(label) => writeln!(notes, ": {}", Visible(label)),
            None => writeln!(notes),
        };
        if let Need::Ask { ask, other } = need {
            let _ = writeln!(notes, "  attention: {}", Visible(&ask.about(other.as_deref())));
        }
        if let Some(report) = proposal.reports.get(index) {
            add_notes(&mut notes, report);
        }
        shown.summary.push_str(&notes);
        if file.status != FileStatus::Unchanged {
            let text = text(&name, file, paths);
            let can_be_allowed = !matches!(need, Need::Ask { ask: Ask::Listed(_) | Ask::Withheld(_), .. });
            let target = patch.target.as_str().to_owned();
            shown.files.push(ShownFile { index, target, name, text, notes, can_be_allowed });
        }
    }
    shown
}

/// Says which file is really written, where links lead to another than the one that is named.
fn add_real(notes: &mut String, place: Option<&Place>) {
    let Some(place) = place else { return };
    let real = place.real();
    if real != place.path.as_str() {
        let _ = write!(notes, " (a link leads to {})", Visible(&real));
    }
}

fn text(name: &str, file: &FilePlan<'_>, paths: Paths) -> String {
    let mut text = String::new();
    if paths == Paths::WithRoot {
        let _ = writeln!(text, "{name}:");
    }
    show_diff(&mut text, &String::from_utf8_lossy(&file.diff(usize::MAX).unwrap_or_default()));
    text
}
