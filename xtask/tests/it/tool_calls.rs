//! Tool calls as models make them, and what each is answered with: the same scenarios over `aptix mcp` and over gRPC.
//!
//! A scenario begins with `== TITLE`, with `IDS: ` before the title where it holds rules of the register. Its parts begin with
//! `--- ` and a word, and are carried out one after the other:
//! - `file PATH` writes a file of the project and `policy` the user's policy, with the lines below; `link PATH -> TARGET` makes a
//!   link and `dir PATH mode=OCTAL` a directory.
//! - `call TOOL [by NAME]` calls a tool with the lines below as its arguments. Callers of different names are different owners.
//!   Each answer has to fit the output schema that the tool is listed with.
//! - `done` means that this call succeeded, `refused CODE [DETAIL]` that it was refused. The lines below, if any, are what
//!   its structured answer has to contain: objects may have further keys, lists are complete, and `...` in a text stands for any.
//! - `text` is in the text that the model reads, each line below by itself; `silent` is not.
//! - `keep NAME = KEY.KEY...` keeps a value of the structured answer: later, `$NAME` stands for it.
//! - `hold` keeps batches from being committed, until `release`. `send TOOL [by NAME]` sends a call meanwhile and waits until the
//!   process that carries it out is about to commit a batch, and `waiting COUNT` until so many are; `heard` waits for the answer to
//!   the earliest call that was sent.
//! - `later SECONDS` lets time pass for plans, where the way was begun with a clock.
//! - `mode NAME MODE` asks for a mode of the session of a caller.
//! - `tool NAME` is listed, and its definition has to contain the lines below; `guide` for authors has each line below.
//! - `logged client` and `logged server`: the log of that side comes to have each event below, as an answer has what it has to.
//! - `after PATH` is a file afterwards, `after PATH gone` none. Everything else in the project has to be as before.
//! - `absent PATH` is nowhere, also outside of the project.
//!
//! What follows `only MCP` or `only gRPC` holds over that way alone, up to the next `only`: the ways differ there.
//!
//! With `cases`, the scenario is played once for each line `ONE => TWO ...`, with `$1`, `$2` and so on in all of its parts
//! replaced. In files `\r \n \t \0 \\ \xNN` are bytes, and a `\c` at the end of a line joins it to nothing. In files, arguments
//! and answers, `{{sha PATH}}`, `{{xNN}}` and `{{N times TEXT}}` are replaced, and in arguments and answers `$project`, the
//! project's directory.

mod answer;
mod at_once;
mod catalogue;
mod faults;
mod grpc;
mod held_commits;
pub(crate) mod mcp;
mod play;
mod previewed;

use aptix_model::tools::catalogue::TOOLS;

use self::grpc::Grpc;
use self::mcp::Mcp;
use self::play::{WayIn, play_all};
use crate::processes::Machine;

/// Plays a file of scenarios over each way in.
fn play_every_way(text: &str) {
    play_on(|| Machine::new().with_modes(), text);
}

/// Plays it on machines of a kind.
fn play_on(machine: impl Fn() -> Machine, text: &str) {
    play_all(&mut [&mut Mcp::on(machine()), &mut Grpc::on(machine())], text);
}

/// Tries something over each way in, on machines of a kind.
fn each_way(machine: impl Fn() -> Machine, mut attempt: impl FnMut(&mut dyn WayIn)) {
    attempt(&mut Mcp::on(machine()));
    attempt(&mut Grpc::on(machine()));
}

#[test]
fn a_look_is_answered_alike() {
    play_every_way(include_str!("tool_calls/looks.txt"));
}

#[test]
fn an_absolute_path_is_the_file_in_the_root() {
    play_every_way(include_str!("tool_calls/absolute_paths.txt"));
}

#[test]
fn a_file_is_created_as_the_contract_says() {
    play_every_way(include_str!("tool_calls/create_file.txt"));
}

#[test]
fn a_created_file_is_where_its_path_leads_or_nowhere() {
    play_every_way(include_str!("tool_calls/create_file_paths.txt"));
}

#[test]
fn a_file_that_is_not_created_has_the_code_of_its_reason() {
    play_every_way(include_str!("tool_calls/create_file_codes.txt"));
}

#[test]
fn a_created_file_leaves_a_record() {
    play_every_way(include_str!("tool_calls/create_file_record.txt"));
}

#[test]
fn a_file_is_patched_by_its_text() {
    play_every_way(include_str!("tool_calls/patch.txt"));
}

#[test]
fn an_edit_is_planned_and_applied() {
    play_every_way(include_str!("tool_calls/plans.txt"));
}

#[test]
fn a_plan_has_an_owner_and_waits_for_its_turn() {
    play_every_way(include_str!("tool_calls/lives.txt"));
}

#[test]
fn a_plan_is_refused_by_name() {
    play_every_way(include_str!("tool_calls/plans_refused.txt"));
}

#[test]
fn a_plan_expires() {
    let mcp = &mut Mcp::on(Machine::new().with_modes());
    play_all(&mut [mcp, &mut Grpc::with_clock()], include_str!("tool_calls/plans_expired.txt"));
}

#[test]
fn a_plan_shows_what_it_does() {
    play_every_way(include_str!("tool_calls/shown.txt"));
}

#[test]
fn a_call_writes_if_its_mode_lets_it() {
    play_every_way(include_str!("tool_calls/modes.txt"));
}

#[test]
fn what_was_applied_is_listed_shown_and_taken_back() {
    play_every_way(include_str!("tool_calls/past.txt"));
}

#[test]
fn models_are_told_how_to_call_and_when() {
    play_every_way(include_str!("tool_calls/words.txt"));
}

#[test]
fn a_batch_is_taken_back() {
    play_every_way(include_str!("tool_calls/undo.txt"));
}

#[test]
fn a_filler_changes_nothing_or_is_refused_by_name() {
    let text = include_str!("tool_calls/fillers.txt");
    play_every_way(text);
    for tool in TOOLS {
        // `prepare_file_` is in the call, what follows in its cases.
        let name = tool.name.strip_prefix("prepare_file_").unwrap_or(tool.name);
        assert!(
            text.lines().any(|line| line.split(" => ").next() == Some(name) || line == format!("--- call {name}")),
            "{name}"
        );
    }
}

#[test]
fn a_bad_call_is_refused_by_name() {
    play_every_way(include_str!("tool_calls/bad_calls.txt"));
}
