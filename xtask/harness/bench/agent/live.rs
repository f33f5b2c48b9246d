//! How long a live read of one file takes in a tree of 100,000 files, beside the same read in a tree of 10.
//!
//! A read touches its file and the rules above it alone, so that both take the same time.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use aptix_client::live::read::read;
use aptix_client::policy::Policy;
use aptix_client::policy::caller::Caller;
use aptix_client::workspace::fs::disk::SystemDisk;
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_model::live::{FilePart, FileSelector, Portion};
use aptix_model::path::DocPath;

use crate::goal::{Goal, median};
use crate::sample::{BYTES, content, time};

/// How many directories the trees have, and files in each.
const SMALL: (usize, usize) = (1, 10);
const LARGE: (usize, usize) = (100, 1_000);
/// How often both are read, and how many times longer it may take in the large tree.
const PASSES: usize = 501;
const AT_MOST: f64 = 1.2;

/// Measures both trees.
pub(crate) fn measure() -> Result<Goal> {
    let place = tempfile::tempdir()?;
    let small = lay_out(place.path(), "small", SMALL)?;
    let large = lay_out(place.path(), "large", LARGE)?;
    let policy = Policy::unstated(Caller::Server);
    let (mut seconds, mut ratios) = ([const { Vec::new() }; 2], Vec::new());
    for pass in 0..PASSES {
        let in_small = || time(|| read_one(&small, &policy, "small"));
        let in_large = || time(|| read_one(&large, &policy, "large"));
        let (in_small, in_large) = if pass % 2 == 0 {
            (in_small()?, in_large()?)
        } else {
            let in_large = in_large()?;
            (in_small()?, in_large)
        };
        ratios.push(in_large / in_small);
        seconds.iter_mut().zip([in_small, in_large]).for_each(|(row, seconds)| row.push(seconds));
    }
    let [small, large] = seconds.map(|row| median(row) * 1e3);
    println!("live read of {BYTES} bytes by docPath: among 10 files {small:.3}, among 100,000 {large:.3}");
    Ok(Goal::at_most("live read, among 100,000 files / among 10", median(ratios), AT_MOST))
}

fn lay_out(place: &Path, name: &str, (directories, files): (usize, usize)) -> Result<Workspace> {
    let root = place.join(name);
    for directory in 0..directories {
        let directory = root.join(format!("dir{directory}"));
        std::fs::create_dir_all(&directory)?;
        for file in 0..files {
            std::fs::write(directory.join(format!("file{file}.txt")), "")?;
        }
    }
    std::fs::write(root.join("dir0/file7.txt"), content(0, 7))?;
    std::fs::write(root.join(".gitignore"), "*.log\n/target/\n")?;
    let spec = root.to_str().context("the directory has a name in UTF-8")?.parse()?;
    Ok(Workspace::open(&[spec], &place.join("state"), Box::new(SystemDisk))?)
}

fn read_one(workspace: &Workspace, policy: &Policy, name: &str) -> Result<()> {
    let file = FileSelector::DocPath(DocPath::new(&format!("{name}/dir0/file7.txt"))?);
    let parts = [FilePart { file, portion: Portion::Whole }];
    match read(workspace, policy, &parts, &|| false).as_deref() {
        Ok([Ok(file)]) => {
            ensure!(file.content.as_ref().is_some_and(|content| content.len() == BYTES), "the file came out wrong");
            Ok(())
        }
        other => bail!("the file is not read: {other:?}"),
    }
}
