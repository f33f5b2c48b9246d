//! Sessions at the stores: held against a plain model over random steps, raced, and bounded.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use aptix_model::batch::Origin;
use aptix_model::batch_event::EventKind;
use aptix_model::id::BatchId;
use aptix_model::record::{BatchRecord, Preparation, Source, UnixMillis};
use aptix_model::session::{ModeRefusal, Progress, RESTRICTED, SessionMode};
use aptix_model::state::BatchState;
use aptix_server::store::embedded::EmbeddedStore;
use aptix_server::store::memory::MemoryStore;
use aptix_server::store::session::{ModeChange, ModeChanged, SESSIONS};
use aptix_server::store::{Appended, Store, Transition, Transitioned};

use crate::store_contract::{append, batch, step, workspace};

const ON: SessionMode = SessionMode::Unrestricted;
const OFF: SessionMode = SessionMode::Restricted;

fn of(session: &str, record: BatchRecord) -> BatchRecord {
    BatchRecord { origin: Origin { session_id: Some(session.to_owned()), ..Origin::default() }, ..record }
}

fn prepared(record: BatchRecord) -> BatchRecord {
    let (owner, expires) = ("ann".parse().unwrap(), UnixMillis(u64::MAX));
    let preparation = Preparation { owner, expires, plan: None, replaces: None, hunk: None, freed: None };
    BatchRecord { state: BatchState::Prepared, source: Source::Prepared(Box::new(preparation)), ..record }
}

fn ask(session: &str, request: &str, to: SessionMode) -> ModeChange {
    ModeChange {
        workspace: workspace("w"),
        session: session.parse().unwrap(),
        owner: "ann".parse().unwrap(),
        request: request.parse().unwrap(),
        to,
        by: None,
        at: UnixMillis(1),
    }
}

/// How far a change came.
async fn set(store: &Arc<dyn Store>, asked: ModeChange) -> Result<Progress, ModeRefusal> {
    match store.set_mode(asked).await.unwrap() {
        ModeChanged::Asked(progress, _) => Ok(progress),
        ModeChanged::Refused(refusal) => Err(refusal),
        ModeChanged::TooMany => panic!("there is room"),
    }
}

/// Numbers that look random, the same for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most as u64).unwrap()
    }
}

/// A session as the rule has it, in its plainest words.
#[derive(Default)]
struct Rule {
    is_restricted: bool,
    /// The requests for RESTRICTED that wait.
    waiting: Vec<String>,
    /// Of each request what was asked for, and whether it was superseded.
    asked: BTreeMap<String, (SessionMode, bool)>,
    in_flight: Vec<BatchRecord>,
    /// Prepared, or waiting for a person.
    held: Vec<BatchRecord>,
}

impl Rule {
    fn may_write(&self) -> bool {
        !self.is_restricted && self.waiting.is_empty()
    }

    fn add(&mut self, batch: BatchRecord) {
        let is_in_flight = batch.state == BatchState::Approved;
        if is_in_flight { &mut self.in_flight } else { &mut self.held }.push(batch);
    }

    /// What every look does: nothing is in flight, so what waits takes effect.
    fn look(&mut self) {
        if self.in_flight.is_empty() && !self.waiting.is_empty() {
            self.waiting.clear();
            self.is_restricted = true;
        }
    }

    fn set(&mut self, request: &str, to: SessionMode) -> Result<Progress, ModeRefusal> {
        if let Some((before, is_superseded)) = self.asked.get(request) {
            let waits = self.waiting.iter().any(|waiting| waiting == request);
            return match (*before == to, waits, is_superseded) {
                (false, ..) => Err(ModeRefusal::RequestReused(*before)),
                (_, true, _) => Ok(Progress::Waiting),
                (_, _, true) => Ok(Progress::Superseded),
                _ => Ok(Progress::Done),
            };
        }
        self.asked.insert(request.to_owned(), (to, false));
        if to == OFF && !self.is_restricted && !self.in_flight.is_empty() {
            self.waiting.push(request.to_owned());
            return Ok(Progress::Waiting);
        }
        if to == ON {
            for waiting in self.waiting.drain(..) {
                self.asked.insert(waiting, (OFF, true));
            }
        }
        self.is_restricted = to == OFF;
        Ok(Progress::Done)
    }
}

/// Holds a session of the store against what the rule says.
async fn compare(store: &Arc<dyn Store>, rule: &mut Rule, name: &str, shown: &str) {
    let seen = store.session(workspace("w"), name.parse().unwrap()).await.unwrap();
    let (mode, in_flight) = seen.map_or((ON, Vec::new()), |seen| (seen.session.mode, seen.in_flight));
    let mut expected: Vec<BatchId> = rule.in_flight.iter().map(|batch| batch.id).collect();
    expected.sort();
    assert_eq!(in_flight, expected, "{shown}");
    rule.look();
    assert_eq!(mode == OFF, rule.is_restricted, "{shown}");
}

/// A batch in one of the states in which it is stored: two of four are free to be applied.
fn held(record: BatchRecord, which: usize) -> BatchRecord {
    match which {
        0 => prepared(record),
        1 => BatchRecord { state: BatchState::PendingApproval, ..record },
        _ => record,
    }
}

/// The step that lets a batch go ahead; a prepared one to where it waits for a person, if `asks`.
fn let_go(held: &BatchRecord, asks: bool) -> Transition {
    let (kind, to) = match (held.state, asks) {
        (BatchState::Prepared, true) => (EventKind::Freed, BatchState::PendingApproval),
        (BatchState::Prepared, false) => (EventKind::Freed, BatchState::Approved),
        _ => (EventKind::Approved, BatchState::Approved),
    };
    Transition { kind, ..step(held, to) }
}

/// Plays random steps; a store in a directory is opened again at times.
async fn history(mut store: Arc<dyn Store>, dir: Option<&Path>, seed: u64) {
    let mut numbers = Numbers(seed);
    let names = ["one", "two"];
    let mut rules = names.map(|_| Rule::default());
    for number in 1..=40_u128 {
        let which = numbers.below(2);
        let (name, rule) = (names[which], &mut rules[which]);
        let shown = format!("seed {seed}, step {number}");
        match numbers.below(8) {
            0 | 1 => {
                let record = of(name, batch(number, "w", &format!("r{number}")));
                match store.append(held(record, numbers.below(4))).await.unwrap() {
                    Appended::New(stored) if rule.may_write() => rule.add(*stored),
                    Appended::Restricted(failure) if !rule.may_write() => assert_eq!(failure.message, RESTRICTED),
                    other => panic!("{shown}: {other:?}"),
                }
            }
            2 | 3 if !rule.in_flight.is_empty() => {
                let ended = rule.in_flight.swap_remove(numbers.below(rule.in_flight.len()));
                let to = [BatchState::Applied, BatchState::Failed, BatchState::Cancelled][numbers.below(3)];
                assert!(matches!(store.transition(step(&ended, to)).await.unwrap(), Transitioned::Done(_)), "{shown}");
            }
            4 if !rule.held.is_empty() => {
                let at = numbers.below(rule.held.len());
                let let_go = let_go(&rule.held[at], numbers.below(2) == 0);
                match store.transition(let_go).await.unwrap() {
                    Transitioned::Done(batch) if rule.may_write() => {
                        rule.held.remove(at);
                        rule.add(batch);
                    }
                    Transitioned::Restricted(_) if !rule.may_write() => {}
                    other => panic!("{shown}: {other:?}"),
                }
            }
            5 | 6 => {
                rule.look();
                let request = format!("m{}", numbers.below(12));
                let to = [ON, OFF][numbers.below(2)];
                assert_eq!(set(&store, ask(name, &request, to)).await, rule.set(&request, to), "{shown}");
            }
            7 => {
                if let Some(dir) = dir {
                    store.close().await.unwrap();
                    drop(store);
                    store = Arc::new(EmbeddedStore::open(dir).unwrap());
                }
            }
            _ => {}
        }
        compare(&store, rule, name, &shown).await;
    }
}

/// REQ-PATCH-009.4, REQ-PATCH-009.5: random submits, plans, ends and changes of two sessions go as the rule says.
#[tokio::test]
async fn random_histories_go_as_the_rule_says() {
    for seed in 1..=300 {
        history(Arc::new(MemoryStore::default()), None, seed).await;
    }
    for seed in 1..=6 {
        let dir = tempfile::tempdir().unwrap();
        history(Arc::new(EmbeddedStore::open(dir.path()).unwrap()), Some(dir.path()), seed).await;
    }
}

/// REQ-PATCH-009.4, REQ-PATCH-009.5: likewise in a database.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn random_histories_in_a_database_go_as_the_rule_says() {
    for seed in 1..=3 {
        let Some(store) = crate::cluster::store().await else { return };
        history(Arc::new(store), None, seed).await;
    }
}

async fn raced(store: Arc<dyn Store>) {
    for round in 0..20_u128 {
        let session = format!("s{round}");
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..8 {
            let (store, number) = (Arc::clone(&store), round * 100 + number + 1);
            let record = of(&session, batch(number, "w", &format!("r{number}")));
            tasks.spawn(async move { store.append(record).await.unwrap() });
        }
        let changing = Arc::clone(&store);
        let asked = ask(&session, "m1", OFF);
        let mut change = tokio::task::JoinSet::new();
        change.spawn(async move { changing.set_mode(asked).await.unwrap() });
        let stored: Vec<BatchRecord> = (tasks.join_all().await.into_iter())
            .filter_map(|appended| match appended {
                Appended::New(stored) => Some(*stored),
                Appended::Restricted(_) => None,
                other => panic!("{other:?}"),
            })
            .collect();
        let ModeChanged::Asked(progress, _) = change.join_next().await.unwrap().unwrap() else { panic!("refused") };
        assert_eq!(progress == Progress::Waiting, !stored.is_empty(), "{stored:?}");
        for batch in &stored {
            assert_eq!(set(&store, ask(&session, "m1", OFF)).await, Ok(Progress::Waiting));
            store.transition(step(batch, BatchState::Applied)).await.unwrap();
        }
        assert_eq!(set(&store, ask(&session, "m1", OFF)).await, Ok(Progress::Done));
        let late = store.append(of(&session, batch(round * 100 + 99, "w", &format!("late{round}")))).await.unwrap();
        assert!(matches!(late, Appended::Restricted(_)), "{late:?}");
    }
}

/// REQ-PATCH-009.4: of submits and a change at once, each submit is stored before the change or refused after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_submit_comes_before_a_change_or_is_refused() {
    raced(Arc::new(MemoryStore::default())).await;
    let dir = tempfile::tempdir().unwrap();
    raced(Arc::new(EmbeddedStore::open(dir.path()).unwrap())).await;
}

/// REQ-PATCH-009.4: likewise in a database.
#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_submit_to_a_database_comes_before_a_change_or_is_refused() {
    let Some(store) = crate::cluster::store().await else { return };
    raced(Arc::new(store)).await;
}

/// What comes of changes that are asked for at once.
async fn set_all(store: &Arc<dyn Store>, asked: impl Iterator<Item = ModeChange>) -> Vec<ModeChanged> {
    let mut tasks = tokio::task::JoinSet::new();
    for asked in asked {
        let store = Arc::clone(store);
        tasks.spawn(async move { store.set_mode(asked).await.unwrap() });
    }
    tasks.join_all().await
}

/// The oldest sessions that may write make room; one that may not stays, and so does one with a batch in flight.
async fn bounded(store: Arc<dyn Store>) {
    append(&store, BatchRecord { created: UnixMillis(1), ..of("busy", batch(1, "w", "r1")) }).await;
    let at = |number: usize| UnixMillis(number as u64 + 2);
    let opened = |number: usize| ModeChange { at: at(number), ..ask(&format!("s{number}"), "m1", ON) };
    let closed = |number: usize| ModeChange { to: OFF, ..opened(number) };
    set_all(&store, (0..5).map(closed).chain((5..SESSIONS - 1).map(opened))).await;
    set_all(&store, (SESSIONS..SESSIONS + 10).map(opened)).await;
    let find = async |id: &str| store.session(workspace("w"), id.parse().unwrap()).await.unwrap();
    for kept in ["busy", "s0", "s4", &format!("s{}", SESSIONS + 9)] {
        assert!(find(kept).await.is_some(), "{kept}");
    }
    for forgotten in ["s5", "s6", "s14"] {
        assert!(find(forgotten).await.is_none(), "{forgotten}");
    }
    assert_eq!(find("s4").await.unwrap().session.mode, OFF);
    let answers = set_all(&store, (0..SESSIONS).map(|number| ask(&format!("t{number}"), "m1", OFF))).await;
    let refused = answers.iter().filter(|answer| **answer == ModeChanged::TooMany).count();
    assert_eq!(refused, 6, "five are restricted, and one has a batch in flight");
    // A batch of a session for which there is no room is stored all the same: nothing restricts it.
    append(&store, of("new", batch(2, "w", "r2"))).await;
    assert!(find("new").await.is_none());
}

#[tokio::test]
async fn a_restricted_session_is_never_forgotten() {
    bounded(Arc::new(MemoryStore::default())).await;
    let dir = tempfile::tempdir().unwrap();
    bounded(Arc::new(EmbeddedStore::open(dir.path()).unwrap())).await;
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_restricted_session_is_never_forgotten_by_a_database() {
    let Some(store) = crate::cluster::store().await else { return };
    bounded(Arc::new(store)).await;
}
