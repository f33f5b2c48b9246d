//! The steps of replacements: what they look for, and where (FILE-SPEC 2.2).

use alloc::vec::Vec;

use aptix_model::batch::{Replacement, Scope};
use aptix_model::lines::LineNumber;

use crate::checking::site::Site;
use crate::checking::violation::Violation;
use crate::target::Base;
use crate::text::find::Needle;

/// One step, checked.
#[derive(Clone, Copy, Debug)]
pub struct ValidStep<'a> {
    /// The old text; empty only for a block added at the end of the file.
    pub find: &'a str,
    /// The new text.
    pub replace: &'a str,
    /// Where.
    pub place: StepPlace,
}

/// Which occurrences a step is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepPlace {
    /// The first one.
    First,
    /// Every one.
    All,
    /// The only place of whole lines, or the one that the author saw at this line.
    Block(Option<LineNumber>),
}

impl<'a> ValidStep<'a> {
    /// The old text, as it is searched for.
    pub(super) fn old_side(&self) -> Needle<'a> {
        self.needle(self.find)
    }

    /// The new text, as it is searched for.
    pub(super) fn new_side(&self) -> Needle<'a> {
        self.needle(self.replace)
    }

    fn needle(&self, side: &'a str) -> Needle<'a> {
        match self.place {
            StepPlace::First | StepPlace::All => Needle::text(side),
            StepPlace::Block(_) => Needle::lines(lines(side)),
        }
    }
}

/// The lines of a block, which end as the file's do, whatever they end with here.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_terminator('\n').map(|line| line.strip_suffix('\r').unwrap_or(line))
}

/// Checks the steps one by one; `None` when anything is wrong.
pub(crate) fn check<'a>(steps: &'a [Replacement], site: &mut Site<'_, 'a>) -> Option<(Base, Vec<ValidStep<'a>>)> {
    if steps.is_empty() {
        site.report("replacements", || Violation::Empty { what: "replacement" });
        return None;
    }
    let mut valid = Vec::with_capacity(steps.len());
    for (index, step) in steps.iter().enumerate() {
        site.change = Some(index);
        site.check_nul("find", Some(&step.find));
        site.check_nul("replace", Some(&step.replace));
        let place = match step.scope {
            Scope::First => Some(StepPlace::First),
            Scope::All => Some(StepPlace::All),
            Scope::Block { start_line } => match start_line.map(LineNumber::new).transpose() {
                Ok(line) => Some(StepPlace::Block(line)),
                Err(error) => {
                    site.report("startLine", || Violation::Line(error));
                    None
                }
            },
        };
        if step.find.is_empty() && !matches!(step.scope, Scope::Block { .. }) {
            site.report("find", || Violation::EmptyFind);
        } else if let Some(place) = place {
            valid.push(ValidStep { find: &step.find, replace: &step.replace, place });
        }
    }
    site.change = None;
    let creates = steps.first().is_some_and(|step| step.find.is_empty());
    let base = if creates { Base::Any } else { Base::MustExist };
    (valid.len() == steps.len()).then_some((base, valid))
}
