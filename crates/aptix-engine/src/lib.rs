//! What an edit does: validate a batch, plan it against the files it names, apply, and show the diff.
//!
//! Pure: no I/O, clock, randomness, threads or async. The caller reads the files that [`plan::reads`] names, and commits
//! what [`plan::plan`] returns. Each module uses only modules below it:
//!
//! | module | holds |
//! | --- | --- |
//! | `correct`, `express` | a refused batch corrected; a plan written as another kind of edit |
//! | `plan`, `validate` | the drivers: one match each, from a kind of edit to its folder |
//! | `valid` | a checked batch: what `validate` returns and `plan` takes |
//! | `dialect` | one folder for each kind of edit: its check, its lowering, its refusals |
//! | `already` | whether a change was made before, or would be made twice |
//! | `content` | whether new text is the content of a file; encodings |
//! | `nearest` | what a refusal shows of the real file |
//! | `planning`, `checking` | what all dialects plan and check with |
//! | `diff`, `preview`, `file_plan`, `generated` | the plan of one file, and what is shown of it; generated files |
//! | `text` | lines of bytes, edits of them, the search for old text, new text in the form of its place |
//! | `readings`, `hunk` | which files the names of a diff mean; who may apply a prepared edit, and until when |
//! | `target`, `digest`, `git_id`, `findings`, `shown` | values that everything above uses |

#![no_std]

extern crate alloc;

mod already;
mod checking;
mod content;
pub mod correct;
mod dialect;
mod diff;
pub mod digest;
pub mod express;
pub mod file_plan;
mod findings;
mod generated;
mod git_id;
pub mod hunk;
mod nearest;
pub mod plan;
pub mod planning;
pub mod preview;
pub mod readings;
mod shown;
pub mod target;
pub mod text;
pub mod valid;
pub mod validate;
