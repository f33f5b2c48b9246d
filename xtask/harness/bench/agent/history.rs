//! What `aptix apply` and `aptix log -n 20` take with a long history and many known roots, beside what they take with none.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use aptix_client::workspace::fs::disk::SystemDisk;
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_engine::digest::sha256;
use aptix_model::id::Uuid;

use crate::goal::{Goal, median};

/// Entries of the history of the root.
const ENTRIES: u64 = 10_000;
/// Other roots that were used once.
const ROOTS: usize = 1_000;
/// Entries that are listed, and that the history has besides in both places.
const LISTED: usize = 20;
/// How often each command is run.
const PASSES: usize = 61;
/// How much longer a command may take.
const AT_MOST: f64 = 1.1;

/// Measures both commands.
pub(crate) fn measure() -> Result<Vec<Goal>> {
    let program = program()?;
    let places = [tempfile::tempdir()?, tempfile::tempdir()?];
    let [none, many] = &places;
    let (none, many) = (none.path(), many.path());
    for place in [none, many] {
        std::fs::create_dir(place.join("ws"))?;
        for batch in 0..LISTED {
            run(&program, place, "apply", &format!("listed-{batch}"))?;
        }
    }
    fill(many)?;
    let mut goals = Vec::new();
    for command in ["apply", "log"] {
        // The first one after the history was filled by other means makes the index anew.
        run(&program, many, command, "first")?;
        let (mut ratios, mut few, mut long) = (Vec::new(), Vec::new(), Vec::new());
        for pass in 0..PASSES {
            let name = format!("pass-{pass}");
            let time = |place| -> Result<f64> {
                let start = Instant::now();
                run(&program, place, command, &name)?;
                Ok(start.elapsed().as_secs_f64())
            };
            let (without, with) = match pass % 2 {
                0 => (time(none)?, time(many)?),
                _ => {
                    let with = time(many)?;
                    (time(none)?, with)
                }
            };
            ratios.push(with / without);
            few.push(without);
            long.push(with);
        }
        let [few, long] = [few, long].map(|times| median(times) * 1e3);
        println!(
            "{command:>5}: {few:.2} ms with no history and no other root, {long:.2} ms with {ENTRIES} entries and {ROOTS} roots"
        );
        goals.push(Goal::at_most(format!("{command}, with / without a long history"), median(ratios), AT_MOST));
    }
    Ok(goals)
}

/// The program: cargo puts this one beside it.
fn program() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let program = own.ancestors().nth(2).context("the bench is not where cargo puts benches")?.join("aptix");
    ensure!(program.exists(), "{} is missing; `cargo xtask bench agent` builds it", program.display());
    Ok(program)
}

/// Makes a new file, or lists the newest batches.
fn run(program: &Path, place: &Path, command: &str, name: &str) -> Result<()> {
    let mut child = Command::new(program);
    match command {
        "apply" => {
            std::fs::write(place.join("document"), format!(r#"{{"path":"{name}","content":"x\n"}}"#))?;
            child.args(["apply", "--root", "ws", "document"]);
        }
        _ => _ = child.args(["log", "--root", "ws", "-n", &LISTED.to_string()]),
    }
    child.current_dir(place).env("HOME", place).env("XDG_STATE_HOME", place.join("state"));
    child.env("XDG_CONFIG_HOME", place.join("config")).stdin(Stdio::null()).stdout(Stdio::null());
    ensure!(child.status()?.success(), "aptix {command} failed");
    Ok(())
}

/// Fills the state directory of a place with entries as earlier versions wrote them, and with roots.
fn fill(place: &Path) -> Result<()> {
    let open = |root: &str| -> Result<Workspace> {
        let root = place.join(root);
        std::fs::create_dir_all(&root)?;
        let spec = root.to_str().context("the directory has a name in UTF-8")?.parse()?;
        Ok(Workspace::open(&[spec], &place.join("state"), Box::new(SystemDisk))?)
    };
    for root in 0..ROOTS {
        open(&format!("roots/{root}"))?;
    }
    let history = open("ws")?.roots().first().context("a root")?.state().path().join("history");
    let names = std::fs::read_dir(&history)?.collect::<Result<Vec<_>, _>>()?;
    let newest = names.iter().map(std::fs::DirEntry::path).max().context("an entry")?;
    let name = newest.file_name().and_then(|name| name.to_str()).context("a name")?;
    let bytes = std::fs::read(&newest)?;
    // What is packed need not be text.
    let text: String = bytes.iter().copied().map(char::from).collect();
    let (_, body) = text.split_once('\n').context("a line")?;
    let body = body.replacen(&format!("\"id\":\"{name}\","), "", 1);
    let body = body.chars().map(u8::try_from).collect::<Result<Vec<_>, _>>()?;
    let entry = [format!("aptix-history-1 {}\n", sha256(&body)).as_bytes(), &body].concat();
    let first = Uuid::try_parse(name)?.as_u128() - (1 << 90);
    for number in 0..ENTRIES {
        std::fs::write(history.join(Uuid::from_u128(first + u128::from(number)).to_string()), &entry)?;
    }
    Ok(())
}
