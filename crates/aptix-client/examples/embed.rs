//! Applies a SEARCH/REPLACE document to a project, prints the diff, and undoes it again.
#![expect(clippy::disallowed_methods, reason = "it lays out a project of its own")]

use std::io::Write as _;

use aptix_client::apply::proposal::Decision;
use aptix_client::apply::{ApplyOptions, Mode, Refusal, apply};
use aptix_client::policy::{Policy, caller::Caller};
use aptix_client::undo::{acknowledge, undo};
use aptix_client::workspace::fs::disk::SystemDisk;
use aptix_client::workspace::keep::history::find::Wanted;
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_model::documents;

const DOCUMENT: &str = "greet.py\n<<<<<<< SEARCH\nprint('hello')\n=======\nprint('hello, world')\n>>>>>>> REPLACE\n";

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let place = tempfile::tempdir()?;
    let root = place.path().join("project");
    std::fs::create_dir(&root)?;
    std::fs::write(root.join("greet.py"), "print('hello')\n")?;

    // What may be undone is kept in a directory of the program's own, never in the project.
    let roots = [root.display().to_string().parse()?];
    let workspace = Workspace::open(&roots, &place.path().join("state"), Box::new(SystemDisk))?;
    let policy = Policy::unstated(Caller::Shell);
    let options = ApplyOptions::new(&policy, Mode::Commit);

    let document = documents::parse(DOCUMENT.as_bytes(), None).map_err(Refusal::from)?;
    let report = apply(&workspace, &document.batch, options, &mut Decision::unattended)?;
    std::io::stdout().write_all(report.diff.as_bytes())?;
    assert_eq!(std::fs::read_to_string(root.join("greet.py"))?, "print('hello, world')\n");

    undo(&workspace, Wanted::Newest, options, &mut Decision::unattended)?;
    acknowledge(&workspace)?;
    assert_eq!(std::fs::read_to_string(root.join("greet.py"))?, "print('hello')\n");
    Ok(())
}
