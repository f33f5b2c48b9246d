//! Compares a server with the reference.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use aptix_model::wire::v1;
use tonic::{Code, Status};

use crate::feed::{Position, Stopped, watch};
use crate::kept;
use crate::ledger::{About, Finding, Sent, Token, Workspace};
use crate::load::{ALL, IDLE, READ, SERVED, Shared};
use crate::random::Random;
use crate::workers::with;

/// Of what was compared before, as many are compared again of each kind and workspace.
const AGAIN: usize = 8;

/// How much is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Depth {
    /// What was acknowledged since the last comparison, a sample of the rest, and every event.
    New,
    Everything,
}

/// Compares, and returns every difference.
///
/// # Errors
/// When the server cannot be asked.
pub(crate) async fn check(shared: &Shared, depth: Depth, random: &mut Random) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for workspace in ALL {
        let chosen: Vec<_> = with(&shared.ledger, |ledger| {
            let Some(known) = ledger.workspaces.get(workspace) else { return Vec::new() };
            let again = random.sample(AGAIN, known.sent.len());
            let all = known.sent.iter().enumerate();
            let chosen =
                all.filter(|(at, (_, sent))| depth == Depth::Everything || !sent.is_checked || again.contains(at));
            chosen.map(|(_, (request, _))| request.clone()).collect()
        });
        let mut found = Vec::new();
        for request in chosen {
            let batch = shared.author.get(workspace, &request).await;
            found.push((request, batch));
        }
        // After the batches, so that no batch is ahead of its events.
        findings.extend(events(shared, workspace).await.context("events cannot be read")?);
        with(&shared.ledger, |ledger| {
            let Some(known) = ledger.workspaces.get_mut(workspace) else { return };
            for (request, found) in found {
                findings.extend(batch(workspace, known, &request, found));
            }
        });
        findings.extend(blobs(shared, workspace, depth, random).await);
        if depth == Depth::Everything {
            findings.extend(once(shared, workspace).await);
        }
    }
    findings.extend(tokens(shared, depth, random).await);
    let batches = if depth == Depth::Everything { usize::MAX } else { AGAIN };
    findings.extend(kept::check(shared, batches, random).await);
    Ok(findings)
}

/// Every event that was shown is there, the same, and none is missing between.
async fn events(shared: &Shared, workspace: &str) -> Result<Vec<Finding>> {
    let head = shared.author.workspace(workspace).await?.cursor.map_or(0, |cursor| cursor.revision);
    let shown =
        with(&shared.ledger, |ledger| ledger.workspaces.entry(workspace.to_owned()).or_default().events.len() as u64);
    let mut findings = Vec::new();
    if head < shown {
        let what = format!("{workspace}: revision {shown} was shown, the newest one is {head}");
        findings.push(Finding::new(About::Event, what));
    }
    match watch(&shared.author, &shared.ledger, workspace, &mut Position::default(), Some(head)).await {
        Ok(()) => {}
        Err(Stopped::Wrong(finding)) => findings.push(finding),
        Err(Stopped::Gone(status)) => return Err(status.into()),
    }
    Ok(findings)
}

/// Holds a batch to what was acknowledged of it.
fn batch(workspace: &str, known: &mut Workspace, request: &str, found: Result<v1::Batch, Status>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(sent) = known.sent.get(request) else { return findings };
    let mut find = |about, what: String| findings.push(Finding::new(about, format!("{workspace}: {request}: {what}")));
    let found = match found {
        Ok(found) => found,
        Err(status) if status.code() == Code::NotFound && sent.answered.is_none() => return findings,
        Err(status) => {
            find(About::Batch, format!("cannot be read: {status}"));
            if sent.decision.as_ref().is_some_and(|decision| decision.is_acknowledged) {
                find(About::Audit, "its decision is lost".to_owned());
            }
            if sent.report.as_ref().is_some_and(|reported| reported.is_acknowledged) {
                find(About::Report, "its report is lost".to_owned());
            }
            return findings;
        }
    };
    if !format!("{:?}", found.edit).contains(&sent.content) {
        find(About::Batch, format!("lacks {:?}: {:?}", sent.content, found.edit));
    }
    if let Some(first) = &sent.answered
        && lasting(first) != lasting(&found)
    {
        find(About::Batch, format!("was {first:?}, is {found:?}"));
    }
    let stored = known.events_of(&found).filter(|event| event.kind == v1::EventKind::Submitted).count();
    if stored != 1 {
        find(About::Event, format!("has {stored} events of its submission"));
    }
    if let Some(wrong) = decision(known, sent, &found) {
        find(About::Audit, wrong);
    }
    if let Some(wrong) = report(workspace, sent, &found) {
        find(About::Report, wrong);
    }
    let is_ended = found.state() != v1::BatchState::Approved;
    let ends = known.events_of(&found).filter(|event| event.state != v1::BatchState::Approved).count();
    if ends != usize::from(is_ended) {
        find(About::Event, format!("is {:?} and has {ends} events of its end", found.state()));
    }
    if let Some(ended) = sent.ended.as_ref().filter(|ended| **ended != found) {
        find(About::Report, format!("had ended as {ended:?}, is {found:?}"));
    }
    if let Some(sent) = known.sent.get_mut(request) {
        sent.is_checked = true;
        if is_ended {
            sent.ended.get_or_insert_with(|| found.clone());
        }
        sent.answered.get_or_insert(found);
    }
    findings
}

/// What never changes of a batch.
pub(crate) fn lasting(batch: &v1::Batch) -> impl PartialEq {
    let batch = batch.clone();
    (
        batch.batch_id,
        batch.workspace_id,
        batch.edit,
        batch.origin,
        batch.request_id,
        batch.create_time,
        batch.author,
        batch.source,
    )
}

/// Whether a decision is in the record as it was made.
fn decision(known: &Workspace, sent: &Sent, found: &v1::Batch) -> Option<String> {
    let decided =
        known.events_of(found).find(|event| matches!(event.kind, v1::EventKind::Cancelled | v1::EventKind::Rejected));
    match (&sent.decision, decided) {
        (Some(decision), None) if decision.is_acknowledged => Some(format!("lacks the decision of {}", decision.name)),
        (Some(decision), Some(event)) => {
            let name = event.actor.clone().unwrap_or_default().name;
            let is_same =
                event.kind == decision.kind && name.contains(&decision.name) && event.reason == decision.reason;
            (!is_same).then(|| format!("has the decision {event:?}, asked for was that of {}", decision.name))
        }
        (None, Some(event)) => Some(format!("has a decision that no one made: {event:?}")),
        (_, None) => None,
    }
}

/// Whether the report is the one that was sent.
fn report(workspace: &str, sent: &Sent, found: &v1::Batch) -> Option<String> {
    if workspace == READ {
        let asked = sent.report.as_ref()?;
        let message = |report: Option<&v1::Report>| Some(report?.failures.first()?.message.clone());
        let is_there = found.report.is_some();
        let is_same = message(found.report.as_ref()) == message(Some(&asked.report));
        return (is_there != is_same || (asked.is_acknowledged && !is_there))
            .then(|| format!("has the report {:?}, sent was {:?}", found.report, asked.report));
    }
    let expected: &[_] = if SERVED.contains(&workspace) {
        &[v1::BatchState::Approved, v1::BatchState::Applied]
    } else {
        &[v1::BatchState::Approved, v1::BatchState::Cancelled, v1::BatchState::Rejected]
    };
    (!expected.contains(&found.state())).then(|| format!("is {:?}: {:?}", found.state(), found.report))
}

/// Each blob that was acknowledged is there, byte for byte.
async fn blobs(shared: &Shared, workspace: &str, depth: Depth, random: &mut Random) -> Vec<Finding> {
    let chosen: BTreeMap<_, _> = with(&shared.ledger, |ledger| {
        let Some(known) = ledger.workspaces.get(workspace) else { return BTreeMap::new() };
        let count = if depth == Depth::Everything { known.blobs.len() } else { AGAIN };
        let again = random.sample(count, known.blobs.len());
        let all = known.blobs.iter().enumerate().filter(|(at, _)| again.contains(at));
        all.map(|(_, (digest, bytes))| (digest.clone(), bytes.clone())).collect()
    });
    let mut findings = Vec::new();
    for (digest, bytes) in chosen {
        let what = match shared.author.download(workspace, &digest).await {
            Ok(found) if found == bytes => continue,
            Ok(found) => format!("{workspace}: {digest} has {} bytes, uploaded were {}", found.len(), bytes.len()),
            Err(status) => format!("{workspace}: {digest} cannot be read: {status}"),
        };
        findings.push(Finding::new(About::Blob, what));
    }
    findings
}

/// Each request is stored once, and nothing else is.
async fn once(shared: &Shared, workspace: &str) -> Vec<Finding> {
    let ids = match shared.author.request_ids(workspace).await {
        Ok(ids) => ids,
        Err(status) => return vec![Finding::new(About::Batch, format!("{workspace}: no list: {status}"))],
    };
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    ids.iter().for_each(|id| *counts.entry(id).or_default() += 1);
    with(&shared.ledger, |ledger| {
        let Some(known) = ledger.workspaces.get(workspace) else { return Vec::new() };
        let stored = known.sent.iter().filter(|(_, sent)| sent.answered.is_some());
        let missing = stored.filter(|(id, _)| !counts.contains_key(id)).map(|(id, _)| format!("{id} is not listed"));
        let twice = counts.iter().filter(|(_, count)| **count > 1).map(|(id, _)| format!("{id} is stored twice"));
        let strange = counts.keys().filter(|id| !known.sent.contains_key(**id)).map(|id| format!("no one sent {id}"));
        let all = missing.chain(twice).chain(strange);
        all.map(|what| Finding::new(About::Batch, format!("{workspace}: {what}"))).collect()
    })
}

/// Tokens are as they were made and revoked: in the list, and at the door.
async fn tokens(shared: &Shared, depth: Depth, random: &mut Random) -> Vec<Finding> {
    let listed = match shared.operator.tokens().await {
        Ok(listed) => listed,
        Err(status) => return vec![Finding::new(About::Token, format!("the tokens are not listed: {status}"))],
    };
    let listed: BTreeMap<_, _> = listed.into_iter().map(|token| (token.name.clone(), token)).collect();
    let (mut wrong, mut tried) = (Vec::new(), Vec::new());
    with(&shared.ledger, |ledger| {
        let count = if depth == Depth::Everything { ledger.tokens.len() } else { AGAIN };
        let newest = ledger.tokens.len().saturating_sub(AGAIN);
        let again = random.sample(count, ledger.tokens.len());
        for (at, (name, token)) in ledger.tokens.iter().enumerate() {
            wrong.extend(of_list(token, listed.get(name)).map(|what| format!("{name} {what}")));
            let secret = token.made.as_ref().map(|(_, secret)| secret.clone());
            let is_tried = at >= newest || again.contains(&at);
            if let Some(secret) = secret.filter(|_| is_tried && (!token.is_revoked || token.ended.is_some())) {
                tried.push((name.clone(), secret, token.is_revoked));
            }
        }
    });
    for (name, secret, is_revoked) in tried {
        match (shared.author.with_token(&secret).workspace(IDLE).await, is_revoked) {
            (Ok(_), false) => {}
            (Err(status), true) if status.code() == Code::Unauthenticated => {}
            (Ok(_), true) => wrong.push(format!("{name} was revoked and is accepted")),
            (Err(status), _) => wrong.push(format!("{name} is refused: {status}")),
        }
    }
    wrong.into_iter().map(|what| Finding::new(About::Token, what)).collect()
}

/// How a token differs from its row in the list.
fn of_list(token: &Token, listed: Option<&v1::Token>) -> Option<String> {
    let (made, _) = token.made.as_ref()?;
    let Some(listed) = listed else { return Some("was made and is not listed".to_owned()) };
    let expected = match &token.ended {
        Some(ended) => ended.clone(),
        // Nobody knows yet whether a revocation that was not answered took place.
        None if token.is_revoked => v1::Token { end_time: listed.end_time, ..made.clone() },
        None => made.clone(),
    };
    (expected != *listed).then(|| format!("was {expected:?}, is listed as {listed:?}"))
}

/// Ends with the first findings, if there are any.
pub(crate) fn none(findings: &[Finding]) -> Result<()> {
    let listed: Vec<_> = findings.iter().take(5).map(ToString::to_string).collect();
    anyhow::ensure!(
        findings.is_empty(),
        "{} differences from what was acknowledged: {}",
        findings.len(),
        listed.join("; ")
    );
    Ok(())
}

/// What a set of findings is about.
pub(crate) fn about(findings: &[Finding]) -> BTreeSet<About> {
    findings.iter().map(|finding| finding.about).collect()
}
