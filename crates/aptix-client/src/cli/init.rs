//! `aptix init`: writes the person's own policy file, in which everything is explained and nothing is stated yet.

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;

use crate::policy::caller::Caller;
use crate::policy::files::PolicyFiles;
use crate::workspace::fs::disk::SystemDisk;

use super::exit::Exit;
use super::home_dirs::HomeDirs;
use super::output::{self, Form};

pub(super) fn run(homes: &HomeDirs) -> anyhow::Result<Exit> {
    let policies = PolicyFiles::new(&homes.config_home()?, Caller::Shell);
    let file = policies.own().display();
    Ok(match policies.init(&SystemDisk) {
        Ok(true) => output::print(&format!("made {file}: edit it, then run `aptix policy check`\n")),
        Ok(false) => {
            let message = format!("{file} is there already, and stays as it is");
            let hint = "`aptix policy check` tells whether it is right; move it away to have a new one made";
            output::show_refused(Form { json: false }, &Failure::new(Reason::AlreadyExists, message).hint(hint).into())
        }
        Err(error) => {
            let failure = Failure::new(Reason::WriteFailed, format!("{file} cannot be made: {error}"));
            output::show_refused(Form { json: false }, &failure.into())
        }
    })
}
