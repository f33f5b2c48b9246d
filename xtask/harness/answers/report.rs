//! Prints what failed and how many came to what.

use crate::case::{Case, Expected};
use crate::judge::{Class, Verdict};
use crate::variants::{Kind, Variant};

/// Variants of a case that are printed.
const SHOWN: usize = 2;

/// Per cent of the unambiguous answers that must be applied.
const APPLIED: usize = 70;

/// What was found of a case.
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    pub(crate) variants: Vec<(Variant, Verdict)>,
    /// Variants of which no rule says what is right.
    pub(crate) unjudged: usize,
}

/// Whether nothing is to be mended.
pub(crate) fn is_fine(judged: &[Judged]) -> bool {
    all_verdicts(judged).all(|verdict| verdict.class.is_fine())
}

/// Whether the promise is kept: nothing is applied wrongly, no refusal is unhelpful, and of the unambiguous answers at
/// least 70 % are applied.
pub(crate) fn keeps_promise(cases: &[Case], judged: &[Judged]) -> bool {
    let share = Share::of(cases, judged);
    all_verdicts(judged).all(|verdict| !matches!(verdict.class, Class::Wrong | Class::Unhelpful))
        && percent(share.applied, share.all) >= APPLIED
}

fn all_verdicts(judged: &[Judged]) -> impl Iterator<Item = &Verdict> {
    judged
        .iter()
        .flat_map(|judged| std::iter::once(&judged.verdict).chain(judged.variants.iter().map(|(_, verdict)| verdict)))
}

/// Unambiguous answers.
#[derive(Default)]
struct Share {
    all: usize,
    /// Those that were applied.
    applied: usize,
    /// Those that the rules let be applied.
    expected: usize,
}

impl Share {
    fn of(cases: &[Case], judged: &[Judged]) -> Self {
        let mut share = Self::default();
        for (case, judged) in cases.iter().zip(judged).filter(|(case, _)| is_unambiguous(case)) {
            share.all += 1;
            share.expected += usize::from(matches!(case.expected, Expected::Applied(_)));
            share.applied += usize::from(matches!(judged.verdict.class, Class::Applied | Class::Mute));
        }
        share
    }
}

/// Prints every case and variant that is not as it must be, or all cases.
pub(crate) fn print_failing(cases: &[Case], judged: &[Judged], all: bool) {
    for (case, judged) in cases.iter().zip(judged) {
        let print = |verdict: &Verdict, title: &str, answer: &str| {
            println!("{}: {}\n  {title}", case.place, verdict.class);
            if all {
                println!("{}", indented(answer, "  > "));
            }
            println!("{}", indented(&verdict.why, "    "));
        };
        if all || !judged.verdict.class.is_fine() {
            print(&judged.verdict, &case.title, &case.answer);
        }
        let mut failing: Vec<_> = judged.variants.iter().filter(|(_, verdict)| !verdict.class.is_fine()).collect();
        failing.sort_by_key(|(_, verdict)| std::cmp::Reverse(verdict.class));
        let shown = if all { failing.len() } else { SHOWN };
        for (variant, verdict) in failing.iter().take(shown) {
            let title = format!("{} [{:?} {}]", case.title, variant.kind, variant.which);
            print(verdict, &title, &variant.answer);
        }
        if failing.len() > shown {
            println!("  and {} variants more of {:?}", failing.len() - shown, case.title);
        }
    }
}

/// Prints how many cases and variants came to what.
pub(crate) fn print_counts(cases: &[Case], judged: &[Judged]) {
    for class in Class::ALL {
        println!("{:>6} {class}", judged.iter().filter(|judged| judged.verdict.class == class).count());
    }
    let Share { all, applied, expected } = Share::of(cases, judged);
    println!(
        "{all:>6} unambiguous answers: {applied} applied ({} %), {expected} expected to be applied ({} %)",
        percent(applied, all),
        percent(expected, all)
    );
    let variants = judged.iter().flat_map(|judged| &judged.variants);
    if variants.clone().next().is_none() {
        return;
    }
    println!("variants   applied  refused  refused, to be applied  unhelpful  WRONG");
    for kind in Kind::ALL {
        let count = |class: Class| {
            let of_kind = variants.clone().filter(|(variant, verdict)| variant.kind == kind && verdict.class == class);
            of_kind.count()
        };
        println!(
            "{:<10} {:>7} {:>8} {:>23} {:>10} {:>6}",
            format!("{kind:?}"),
            count(Class::Applied),
            count(Class::Refused),
            count(Class::NotApplied),
            count(Class::Unhelpful),
            count(Class::Wrong)
        );
    }
    let unjudged: usize = judged.iter().map(|judged| judged.unjudged).sum();
    println!("{unjudged} cut answers that read like whole ones are not judged: the whole answer is to be refused");
}

const fn is_unambiguous(case: &Case) -> bool {
    case.is_clear || matches!(case.expected, Expected::Applied(_))
}

fn percent(part: usize, whole: usize) -> usize {
    (part * 100).checked_div(whole).unwrap_or_default()
}

fn indented(text: &str, by: &str) -> String {
    text.lines().map(|line| format!("{by}{line}")).collect::<Vec<_>>().join("\n")
}
