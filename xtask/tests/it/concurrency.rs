//! Batches that end at the same time: each ends once, and each report is its own.

use serde_json::Value;

use crate::documents::{create, insert};
use crate::processes::{Machine, Server, eventually, write};

/// How often the agent finds batches waiting.
const STARTS: usize = 8;

/// Submits without waiting; the batch.
fn submit(machine: &Machine, server: &Server, document: &str) -> String {
    write(&machine.path("submitted.json"), document);
    let (answer, code) = machine.ask(server, "submit", &["submitted.json"]);
    assert_eq!(code, Some(0), "{answer}");
    answer["batchId"].as_str().unwrap().to_owned()
}

fn shown(machine: &Machine, server: &Server, batch: &str) -> Value {
    machine.ask(server, "show", &[batch]).0
}

#[test]
fn eight_failing_batches_that_wait_for_an_agent_are_each_refused_and_reported() {
    let machine = Machine::new().with_policy("[limits]\nrefused_per_minute = 1000\n");
    let server = machine.server();
    for start in 0..STARTS {
        let failing: Vec<_> = (0..8)
            .map(|number| {
                let path = format!("missing-{start}-{number}.txt");
                let batch = submit(&machine, &server, &insert(&[(&path, "1\n")], 1, &path));
                (path, batch)
            })
            .collect();
        let good = submit(&machine, &server, &create(&format!("made-{start}.txt"), "made\n"));
        let mut agent = machine.agent(&server);
        eventually("every batch has ended", || {
            let ended = agent.0.try_wait().unwrap();
            assert!(ended.is_none(), "the agent ended: {ended:?}\n{}", machine.logged("agent.log"));
            shown(&machine, &server, &good)["state"] == "APPLIED"
                && failing.iter().all(|(_, batch)| shown(&machine, &server, batch)["state"] == "FAILED")
        });
        for (path, batch) in &failing {
            let shown = shown(&machine, &server, batch);
            assert!(shown["errors"][0]["path"].as_str().unwrap().ends_with(path), "{path}: {shown}");
        }
    }
}
