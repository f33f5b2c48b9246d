//! What `deploy/` has for operators: every option, key and variable that its files name exists.

use std::path::{Path, PathBuf};
use std::process::Command;

use aptix_server::config::{KEYS, Key};

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn text(file: &str) -> String {
    std::fs::read_to_string(deploy().join(file)).unwrap()
}

const FILES: [&str; 4] = ["Dockerfile", "compose.yaml", "systemd/aptix-server.service", "server.toml"];

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_aptix-server"))
}

/// The words of each call of the program in a text: an exec line of systemd, a list of Docker, a line for a shell.
fn calls(text: &str) -> Vec<Vec<String>> {
    let words = |line: &str| {
        let words = line.split(|it: char| it.is_whitespace() || "[]\",=".contains(it)).filter(|word| !word.is_empty());
        let mut words = words.skip_while(|word| *word != "aptix-server" && !word.ends_with("/aptix-server"));
        words.next().map(|_| words.map(str::to_owned).collect())
    };
    // `docker compose run SERVICE` takes the place of the program's name.
    text.lines().map(|line| line.replace("run --rm server", "aptix-server")).filter_map(|line| words(&line)).collect()
}

#[test]
fn every_option_that_the_files_give_exists() {
    let mut options = 0;
    for file in FILES {
        for call in calls(&text(file)) {
            let is_name = |word: &&String| word.starts_with(|first: char| first.is_ascii_lowercase());
            let commands: Vec<_> = call.iter().take_while(is_name).collect();
            let output = program().args(&commands).arg("--help").output().unwrap();
            let help = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success(), "{file}: {call:?}");
            for option in call.iter().filter(|word| word.starts_with("--")) {
                options += 1;
                assert!(help.contains(&format!("{option} ")), "{file}: {commands:?} has no {option}");
            }
        }
    }
    assert!(options >= 5, "{options} options were found");
}

#[test]
fn every_variable_that_the_files_set_is_that_of_a_key() {
    let mut found = 0;
    for file in FILES {
        let text = text(file);
        for (start, _) in text.match_indices("APTIX_SERVER_") {
            let end = text[start..].find(|it: char| !it.is_ascii_uppercase() && it != '_').unwrap();
            let variable = &text[start..start + end];
            assert!(KEYS.iter().map(Key::variable).any(|known| known == variable), "{file}: {variable}");
            found += 1;
        }
    }
    assert!(found >= 4, "{found} variables were found");
}

#[test]
fn the_configuration_of_the_service_has_no_fault() {
    let output = program().args(["check-config", "--config"]).arg(deploy().join("server.toml")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
