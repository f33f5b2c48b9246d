//! What the system refuses: access, writes, room, the kernel's confinement.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use super::{defect, defects, found, set_mode};
use crate::skip::skip;

/// A user who is not root.
const NOBODY: u32 = 65534;

/// Runs a script as root of a namespace of its own, in which it can mount; `$0` is the `aptix` that is tested.
fn mounting(place: &Path, script: &str) -> Option<Output> {
    std::fs::create_dir_all(place.join("ws")).unwrap();
    let script = format!("{script}\nexec \"$0\" doctor --json --root ws");
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", &script, env!("CARGO_BIN_EXE_aptix")])
        .current_dir(place)
        .env("XDG_STATE_HOME", place.join("state"))
        .env("XDG_CONFIG_HOME", place.join("config"))
        .output();
    let output = output.ok().filter(|output| output.status.code() != Some(77) && !output.stdout.is_empty());
    if output.is_none() {
        skip("nothing can be mounted here");
    }
    output
}

#[test]
fn a_file_system_that_is_read_only_or_full_is_found() {
    let place = tempfile::tempdir().unwrap();
    let read_only = "mount --bind ws ws && mount -o remount,bind,ro ws || exit 77";
    let Some(output) = mounting(place.path(), read_only) else { return };
    let root = defect(&found(&output), "root", "problem", "Read-only file system");
    assert!(root.hint.contains("mount -o remount,rw"), "{root:?}");

    let small = "mkdir -p state && mount -t tmpfs -o size=1m none state || exit 77";
    let Some(output) = mounting(place.path(), small) else { return };
    let state = defect(&found(&output), "state", "warning", "only 1 MiB are free");
    assert!(state.hint.contains("df -h "), "{state:?}");
    let full = format!("{small}\nhead -c 2000000 /dev/zero > state/fill 2> /dev/null");
    let Some(output) = mounting(place.path(), &full) else { return };
    defect(&found(&output), "state", "problem", "is full");
}

#[test]
fn a_kernel_that_confines_nothing_is_found() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("ws")).unwrap();
    let without = ["-f", "-qq", "-o", "/dev/null", "-e", "inject=landlock_create_ruleset:error=ENOSYS"];
    let output = Command::new("strace")
        .args(without)
        .args([env!("CARGO_BIN_EXE_aptix"), "doctor", "--json", "--root", "ws"])
        .current_dir(place.path())
        .env("XDG_STATE_HOME", place.path().join("state"))
        .env("XDG_CONFIG_HOME", place.path().join("config"))
        .output();
    let Some(output) = output.ok().filter(|output| !output.stdout.is_empty()) else {
        return skip("there is no strace, or it may not trace");
    };
    let landlock = defect(&found(&output), "landlock", "warning", "does not confine");
    assert!(landlock.hint.contains("Linux 5.19"), "{landlock:?}");
}

/// Root may do all that modes forbid, so that another user runs it.
#[test]
fn a_root_that_this_user_may_not_use_is_found_with_who_can_change_that() {
    let place = tempfile::tempdir().unwrap();
    set_mode(place.path(), 0o755);
    let aptix = place.path().join("aptix");
    std::fs::copy(env!("CARGO_BIN_EXE_aptix"), &aptix).unwrap();
    let ws = place.path().join("ws");
    for dir in ["ws", "state", "config"] {
        std::fs::create_dir(place.path().join(dir)).unwrap();
    }
    let is_root = rustix::process::geteuid().is_root();
    let own = |dir: &str, user: u32| chown(place.path().join(dir), Some(user), Some(user)).unwrap();
    if is_root {
        ["", "ws", "state", "config"].iter().for_each(|dir| own(dir, NOBODY));
    }
    let doctor = || {
        let mut command = Command::new(&aptix);
        command.args(["doctor", "--json", "--root", "ws"]).current_dir(place.path());
        command.env("XDG_STATE_HOME", place.path().join("state"));
        command.env("XDG_CONFIG_HOME", place.path().join("config"));
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        found(&command.output().unwrap())
    };
    assert_eq!(defects(doctor()), []);
    for (mode, words) in [(0o555, "cannot be written: "), (0o333, "cannot be read: ")] {
        set_mode(&ws, mode);
        let root = defect(&doctor(), "root", "problem", words);
        assert_eq!(root.hint, format!("run `chmod u+rwx {}`", ws.canonicalize().unwrap().display()));
    }
    set_mode(&ws, 0o755);
    set_mode(&place.path().join("state"), 0o500);
    let state = defect(&doctor(), "state", "problem", "cannot be made: ");
    assert!(state.hint.contains("chmod u+rwx"), "{state:?}");
    set_mode(&place.path().join("state"), 0o700);
    if is_root {
        own("ws", 0);
        let root = defect(&doctor(), "root", "problem", "cannot be written: ");
        assert!(root.hint.contains("the user with the id 0, who owns it"), "{root:?}");
        // What another user owns above the policy can be replaced by that user.
        own("config", 4321);
        let exposed = defect(&doctor(), "policy", "warning", "it belongs to the user with the id 4321");
        assert!(exposed.hint.starts_with("run `sudo chown 65534 "), "{exposed:?}");
    }
    assert_eq!(ws.metadata().unwrap().permissions().mode() & 0o777, 0o755);
}
