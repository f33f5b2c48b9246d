//! The review page, in a real browser, over a real server and a real agent: what a person sees there, and what their answers do.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::scope;

use aptix_model::wire::v1;

use crate::browser::{Browser, Tab};
use crate::documents::{create, insert};
use crate::per_file::{self, Caller, replace};
use crate::processes::{Machine, Running, Server, eventually, json, wait_until_served, write};

/// An agent that asks on the page, which nobody has opened yet.
fn asking(machine: &Machine) -> (Server, Running) {
    let server = machine.server();
    let agent = machine.agent_in(&server, "ask", |agent| _ = agent.args(["--review", "127.0.0.1:0"]));
    wait_until_served(&server);
    (server, agent)
}

/// The newest link that the agent showed.
fn link(machine: &Machine) -> String {
    let newest = || {
        let logged = machine.logged("agent.log");
        let line = logged.lines().rfind(|line| line.contains("/?token="))?;
        Some(line.rsplit_once(' ')?.1.to_owned())
    };
    eventually("the agent shows a link", || newest().is_some());
    newest().unwrap()
}

/// A page that is open in a browser.
fn opened(machine: &Machine, browser: &mut Browser) -> Tab {
    let tab = browser.open(&link(machine));
    browser.until_shown(&tab, "Nothing waits.");
    tab
}

/// A machine with these files of one line, an agent that asks, and the page open in a browser; `None` where there is no browser.
fn reviewing(files: &[&str]) -> Option<(Machine, (Server, Running), Browser, Tab)> {
    let machine = Machine::new();
    files.iter().for_each(|name| machine.put(name, "one\n"));
    let asking = asking(&machine);
    let mut browser = Browser::start()?;
    let tab = opened(&machine, &mut browser);
    Some((machine, asking, browser, tab))
}

/// Waits for a batch and looks at it.
#[track_caller]
fn look(browser: &mut Browser, tab: &Tab) {
    browser.click(tab, "#waiting button");
    browser.until(tab, "document.getElementById('approve') !== null && document.querySelectorAll('.row').length > 0");
}

#[test]
fn a_person_approves_one_batch_refuses_another_with_a_reason_and_takes_the_first_back() {
    let Some((machine, (server, _agent), mut browser, tab)) = reviewing(&["a.txt"]) else { return };
    scope(|scope| {
        let applied = scope.spawn(|| machine.submit(&server, &insert(&[("a.txt", "one\n")], 1, "two")));
        look(&mut browser, &tab);
        browser.until_shown(&tab, "+ two");
        let shown = browser.text(&tab);
        for part in ["1 file, +1 -0", "modified a.txt", "label \"two\"", "sha256:", "+ two"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert_eq!(machine.files(), [("a.txt".to_owned(), "one\n".to_owned())]);
        browser.press(&tab, "a");
        let (applied, code) = applied.join().unwrap();
        assert_eq!((code, &applied["state"]), (Some(0), &"APPLIED".into()), "{applied}");
        assert_eq!(machine.files(), [("a.txt".to_owned(), "one\ntwo\n".to_owned())]);
        browser.until_shown(&tab, "approved in the browser: written");

        let refused = scope.spawn(|| machine.submit(&server, &insert(&[("a.txt", "one\ntwo\n")], 2, "three")));
        look(&mut browser, &tab);
        browser.press(&tab, "r");
        browser.write(&tab, "not on a Friday\u{202e}");
        browser.click(&tab, "#refusing button[value=refuse]");
        let (refused, code) = refused.join().unwrap();
        assert_eq!((code, &refused["state"]), (Some(1), &"REJECTED".into()), "{refused}");
        let message = refused["errors"][0]["message"].as_str().unwrap();
        assert!(message.ends_with("said no: not on a Friday\\u{202e}"), "{message}");
    });
    browser.until_shown(&tab, "refused in the browser");
    browser.click(&tab, "#past button");
    browser.click(&tab, "#undo");
    browser.until_shown(&tab, "Approve (a)");
    browser.until_shown(&tab, "- two");
    assert_eq!(machine.files(), [("a.txt".to_owned(), "one\ntwo\n".to_owned())], "it is shown first");
    browser.press(&tab, "a");
    eventually("the batch is taken back", || machine.files() == [("a.txt".to_owned(), "one\n".to_owned())]);
    browser.until_shown(&tab, "undone by");
}

#[test]
fn each_file_of_a_batch_that_is_applied_file_by_file_is_decided_by_itself() {
    let Some((machine, (server, _agent), mut browser, tab)) = reviewing(&["a.txt", "b.txt"]) else { return };
    let mut caller = Caller::of(&server);
    scope(|scope| {
        let files = vec![replace("a.txt", "one", "1"), replace("b.txt", "one", "1")];
        let outcome = scope.spawn(move || caller.outcome("r", files));
        look(&mut browser, &tab);
        browser.press(&tab, "j");
        browser.press(&tab, "x");
        browser.write(&tab, "keep this one");
        browser.eval(&tab, "document.activeElement.blur()");
        browser.press(&tab, "a");
        let (batch, state, told) = outcome.join().unwrap();
        assert_eq!(
            (state, told),
            (v1::BatchState::Partial, ["a.txt modified", "b.txt failed", "b.txt REJECTED"].map(str::to_owned).to_vec())
        );
        let failures = batch.report.unwrap().failures;
        assert!(failures[0].message.ends_with("keep this one"), "{failures:?}");
    });
    let expected = [("a.txt", "1\n"), ("b.txt", "one\n")].map(|(name, text)| (name.to_owned(), text.to_owned()));
    assert_eq!(machine.files(), expected, "it was asked about once");
}

#[test]
fn of_two_tabs_one_decides_and_the_other_is_told() {
    let machine = Machine::new();
    machine.put("a.txt", "one\n");
    let (server, _agent) = asking(&machine);
    let Some(mut browser) = Browser::start() else { return };
    let one = opened(&machine, &mut browser);
    let other = browser.open(&browser_address(&machine));
    browser.until_shown(&other, "Nothing waits.");
    assert!(!browser.text(&one).contains("Opened in"), "two tabs of one browser");
    let newest = link(&machine);
    let (address, token) = newest.strip_prefix("http://").unwrap().split_once('/').unwrap();
    raw(address, &format!("GET /{token} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"));
    browser.until_shown(&one, "Opened in 2 browsers");
    scope(|scope| {
        let submitted = scope.spawn(|| machine.submit(&server, &insert(&[("a.txt", "one\n")], 1, "two")));
        for tab in [&one, &other] {
            browser.click(tab, "#waiting button");
            browser.until(tab, "document.getElementById('approve') !== null");
        }
        // The other tab answers without having been told.
        let answer = "fetch(`/api/waiting/1`, { method: 'POST', headers: { 'content-type': 'application/json' }, \
                      body: JSON.stringify({ digest: document.querySelector('.digest').textContent.slice(7), approve: APPROVE }) })\
                      .then(async (answer) => answer.status + ' ' + await answer.text())";
        let both =
            format!("Promise.all([{}, {}])", answer.replace("APPROVE", "true"), answer.replace("APPROVE", "false"));
        let answers = browser.eval(&one, &both);
        let mut answers: Vec<_> = answers.as_array().unwrap().iter().map(|answer| answer.as_str().unwrap()).collect();
        answers.sort_unstable();
        assert!(answers[0].starts_with("200 ") && answers[1].starts_with("409 "), "{answers:?}");
        let (_, code) = submitted.join().unwrap();
        let has_won = answers[0].contains("approved");
        assert_eq!(code, Some(i32::from(!has_won)), "{answers:?}");
        browser.until_shown(&other, if has_won { "was approved in the browser" } else { "was refused in the browser" });
        let late = browser.eval(
            &other,
            &answer
                .replace("document.querySelector('.digest').textContent.slice(7)", "'0'.repeat(64)")
                .replace("APPROVE", "true"),
        );
        assert!(late.as_str().unwrap().starts_with("409 it was "), "{late}");
    });
}

/// A key that was meant for one batch decides about no other, whatever comes to the page meanwhile.
#[test]
fn what_comes_next_is_not_decided_before_it_is_looked_at() {
    let Some((machine, (server, _agent), mut browser, tab)) = reviewing(&["a.txt"]) else { return };
    let mut caller = Caller::of(&server);
    scope(|scope| {
        let first = scope.spawn(|| machine.submit(&server, &insert(&[("a.txt", "one\n")], 1, "two")));
        look(&mut browser, &tab);
        let next = scope.spawn(move || caller.outcome("next", vec![per_file::create("next.txt")]));
        browser.press(&tab, "a");
        assert_eq!(first.join().unwrap().1, Some(0));
        browser.until(&tab, "document.querySelectorAll('#ended li').length === 1 && document.querySelectorAll('#waiting button').length === 1");
        browser.press(&tab, "a");
        browser.press(&tab, "r");
        browser.until(&tab, "document.getElementById('approve') === null && !document.getElementById('refusing').open");
        browser.press(&tab, "n");
        browser.until(&tab, "document.getElementById('approve') !== null");
        assert!(machine.files().iter().all(|(name, _)| name != "next.txt"), "nobody looked at it");
        browser.press(&tab, "a");
        assert_eq!(next.join().unwrap().1, v1::BatchState::Applied);
    });
}

/// The address of the page, without a link.
fn browser_address(machine: &Machine) -> String {
    link(machine).split_once('?').unwrap().0.to_owned()
}

#[test]
fn what_changed_while_it_was_looked_at_is_not_written_and_the_page_says_so() {
    let Some((machine, (server, _agent), mut browser, tab)) = reviewing(&["a.txt"]) else { return };
    scope(|scope| {
        let submitted = scope.spawn(|| machine.submit(&server, &insert(&[("a.txt", "one\n")], 1, "two")));
        look(&mut browser, &tab);
        machine.put("a.txt", "one\nmine\n");
        browser.press(&tab, "a");
        let (stale, code) = submitted.join().unwrap();
        assert_eq!((code, &stale["errors"][0]["code"]), (Some(1), &"FILE_CHANGED".into()), "{stale}");
        browser.until_shown(&tab, "nothing was written: ");
        assert_eq!(machine.files(), [("a.txt".to_owned(), "one\nmine\n".to_owned())]);
    });
}

/// The policy, or the batch itself, is another one by the time of the answer.
#[test]
fn what_is_denied_or_withdrawn_while_it_is_looked_at_is_not_written() {
    let Some((machine, (server, _agent), mut browser, tab)) = reviewing(&["a.txt", "b.txt"]) else { return };
    let mine = [("a.txt", "one\n"), ("b.txt", "one\n")].map(|(name, text)| (name.to_owned(), text.to_owned()));
    scope(|scope| {
        let submitted = scope.spawn(|| machine.submit(&server, &insert(&[("a.txt", "one\n")], 1, "two")));
        look(&mut browser, &tab);
        machine.set_policy("deny = [\"a.txt\"]\n");
        browser.press(&tab, "a");
        let (denied, code) = submitted.join().unwrap();
        assert_eq!((code, &denied["errors"][0]["code"]), (Some(1), &"POLICY_DENIED".into()), "{denied}");
        browser.until_shown(&tab, "nothing was written: ");
        assert_eq!(machine.files(), mine);

        write(&machine.path("b.json"), &insert(&[("b.txt", "one\n")], 1, "two"));
        let (stored, _) = machine.ask(&server, "submit", &["b.json"]);
        look(&mut browser, &tab);
        assert!(machine.call(&server, "cancel", &[stored["batchId"].as_str().unwrap()]).status.success());
        browser.until_shown(&tab, "withdrawn");
        browser.press(&tab, "a");
    });
    // What comes next is handled after it.
    let (denied, code) = machine.submit(&server, &insert(&[("a.txt", "one\n")], 2, "two"));
    assert_eq!(code, Some(1), "{denied}");
    assert_eq!(machine.files(), mine);
}

#[test]
fn names_and_contents_are_shown_as_they_are_and_do_nothing_to_the_page() {
    let Some((machine, (server, _agent), mut browser, tab)) = reviewing(&[]) else { return };
    let hostile = "<img src=x onerror=\"window.hit=1\"></div><script>window.hit=1</script>";
    let text = format!("{hostile}\nif (admin\u{202e} \u{200b}){{\u{2066}\n\u{1b}[2J\nplain\r\n");
    let document = create("it's &lt;b&gt; 'new'.txt", &text);
    scope(|scope| {
        let submitted = scope.spawn(|| machine.submit(&server, &document));
        look(&mut browser, &tab);
        browser.until_shown(&tab, "plain");
        let shown = browser.text(&tab);
        for part in [hostile, "it's &lt;b&gt;", "admin\\u{202e} \\u{200b}", "\\u{2066}", "\\u{1b}[2J", "onerror"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        let raw = ['\u{202e}', '\u{200b}', '\u{2066}', '\u{1b}'];
        assert!(!shown.contains(raw), "{shown}");
        assert_eq!(
            browser.eval(
                &tab,
                "window.hit === undefined && document.querySelectorAll('main img, main script').length === 0"
            ),
            true
        );
        browser.press(&tab, "v");
        browser.until(&tab, "document.querySelectorAll('.split .row').length > 0");
        browser.press(&tab, "a");
        assert_eq!(submitted.join().unwrap().1, Some(0));
    });
}

/// Whether the page shows no batch that waits, also none that has just ended.
const NOTHING_WAITS: &str = "document.querySelector('#waiting button') === null";

/// Of a file that its author may not know, the page asks first whether the batch may be compared with it, and shows none of it.
#[test]
fn a_batch_is_compared_with_withheld_files_once_a_person_agrees() {
    let Some((machine, (server, _agent), mut browser, tab)) = reviewing(&["notes.txt"]) else { return };
    machine.put(".gitignore", "notes.txt\n");
    let document = insert(&[("notes.txt", "one\n")], 1, "two");
    let ask = |browser: &mut Browser, key: &str| {
        browser.click(&tab, "#waiting button");
        browser.until_shown(&tab, "Compare (a)");
        browser.until_shown(&tab, "edits withheld files");
        let shown = browser.text(&tab);
        assert!(shown.contains("notes.txt: ") && !shown.contains("+ two"), "{shown}");
        browser.press(&tab, key);
    };
    scope(|scope| {
        let refused = scope.spawn(|| machine.submit(&server, &document));
        ask(&mut browser, "r");
        let (refused, code) = refused.join().unwrap();
        assert_eq!((code, &refused["errors"][0]["detail"]), (Some(1), &"WITHHELD".into()), "{refused}");
        browser.until_shown(&tab, "not allowed to be compared in the browser");
        browser.until(&tab, NOTHING_WAITS);
        let again = scope.spawn(|| machine.submit(&server, &document));
        ask(&mut browser, "a");
        browser.until(&tab, "document.querySelectorAll('#ended li').length === 2");
        look(&mut browser, &tab);
        browser.press(&tab, "r");
        let (again, _) = again.join().unwrap();
        assert_eq!(again["errors"][0]["message"], refused["errors"][0]["message"], "no reason is asked for: {again}");
        browser.until(&tab, NOTHING_WAITS);
        let applied = scope.spawn(|| machine.submit(&server, &document));
        ask(&mut browser, "a");
        browser.until(&tab, "document.querySelectorAll('#ended li').length === 4");
        browser.until_shown(&tab, "allowed to be compared in the browser");
        look(&mut browser, &tab);
        browser.until_shown(&tab, "+ two");
        browser.press(&tab, "a");
        assert_eq!(applied.join().unwrap().1, Some(0));
    });
    assert!(machine.files().contains(&("notes.txt".to_owned(), "one\ntwo\n".to_owned())));
}

#[test]
fn a_file_of_which_a_part_is_shown_can_be_opened_whole() {
    let Some((machine, (server, _agent), mut browser, tab)) = reviewing(&[]) else { return };
    let mut before: Vec<_> = (1..=2500).map(|number| format!("line {number}")).collect();
    before[2] = format!("\u{202e}{}", "\u{1f680}".repeat(3_000));
    let before = before.join("\n") + "\n";
    machine.put("a.txt", &before);
    let document = insert(&[("a.txt", &before)], 1200, "new");
    scope(|scope| {
        let submitted = scope.spawn(|| machine.submit(&server, &document));
        look(&mut browser, &tab);
        browser.until_shown(&tab, "1,197 unchanged lines: show");
        browser.until_shown(&tab, "1,297 unchanged lines: show");
        assert_eq!(browser.eval(&tab, "document.querySelectorAll('.row:not(.gap)').length < 20"), true);
        browser.press(&tab, "o");
        browser.until_shown(&tab, "197 unchanged lines: show");
        browser.until_shown(&tab, "297 unchanged lines: show");
        browser.until_shown(&tab, "\\u{202e}");
        browser.until_shown(&tab, "and 1,009 more characters: show");
        browser.click(&tab, "span > .more");
        browser.until(&tab, "document.querySelectorAll('span > .more').length === 0");
        let rockets = "[...document.querySelector('main').textContent].filter((one) => one === '\u{1f680}').length";
        assert_eq!(browser.eval(&tab, rockets), 3000);
        browser.press(&tab, "o");
        browser.until(&tab, "document.querySelectorAll('.gap').length === 0");
        // Each line once, in its order, with its numbers before and after.
        let rows = "[...document.querySelectorAll('.row.kept')].map((row) => [...row.children].slice(0, 2).map((cell) => Number(cell.textContent)))";
        let is_right =
            format!("{rows}.every(([before, after], at) => before === at + 1 && after === at + (at < 1200 ? 1 : 2))");
        assert_eq!(browser.eval(&tab, &format!("{rows}.length")), 2500);
        assert_eq!(browser.eval(&tab, &is_right), true);
        let texts = "[...document.querySelectorAll('.row.kept .text')].filter((text, at) => text.textContent.trim() === `line ${at + 1}`).length";
        assert_eq!(browser.eval(&tab, texts), 2499);
        browser.press(&tab, "v");
        browser.until_shown(&tab, "1,197 unchanged lines: show");
        browser.press(&tab, "o");
        browser.until(&tab, "document.querySelectorAll('.split .row').length > 2000");
        browser.press(&tab, "a");
        assert_eq!(submitted.join().unwrap().1, Some(0));
    });
}

#[test]
fn five_hundred_files_and_a_line_of_ten_megabytes_stay_usable() {
    let Some((machine, (server, _agent), mut browser, tab)) = reviewing(&[]) else { return };
    let mut caller = Caller::of(&server);
    let document = create("long.txt", &"x".repeat(10_000_000));
    scope(|scope| {
        let files = (0..500).map(|number| per_file::create(&format!("f{number:03}.txt"))).collect();
        let outcome = scope.spawn(move || caller.outcome("r", files));
        look(&mut browser, &tab);
        browser.until_shown(&tab, "500 files, +500 -0");
        // What is far below is not drawn before it is looked at.
        assert_eq!(browser.eval(&tab, "document.querySelectorAll('.row').length < 400"), true);
        browser.eval(&tab, "document.getElementById('file-499').scrollIntoView()");
        browser.until(&tab, "document.querySelectorAll('#file-499 .row').length > 0");
        browser.press(&tab, "a");
        assert_eq!(outcome.join().unwrap().1, v1::BatchState::Applied);
        browser.until_shown(&tab, "Nothing waits.");

        let submitted = scope.spawn(|| machine.submit(&server, &document));
        look(&mut browser, &tab);
        browser.until_shown(&tab, "and 9,998,001 more characters: show");
        browser.click(&tab, ".more");
        browser.until_shown(&tab, "and 9,898,001 more characters: show");
        browser.press(&tab, "a");
        assert_eq!(submitted.join().unwrap().1, Some(0));
    });
}

/// What the page answers to a request that no browser made.
fn raw(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_used_link_another_site_and_another_name_get_nothing() {
    let machine = Machine::new();
    let (_server, _agent) = asking(&machine);
    let first = link(&machine);
    let rest = first.strip_prefix("http://").unwrap();
    let (address, token) = rest.split_once('/').unwrap();
    let get = |path: &str, more: &str| {
        raw(address, &format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{more}\r\n"))
    };
    assert!(get("", "").starts_with("HTTP/1.1 401 "), "no link was opened");
    assert!(get("api/board", "").starts_with("HTTP/1.1 401 "));
    let entered = get(token, "");
    assert!(entered.starts_with("HTTP/1.1 303 "), "{entered}");
    assert!(entered.contains("content-security-policy: default-src 'none'; script-src 'self'"), "{entered}");
    let (_, cookie) = entered.split_once("set-cookie: ").unwrap();
    let cookie = format!("Cookie: {}\r\n", cookie.split_once(';').unwrap().0);
    assert!(get("api/board", &cookie).starts_with("HTTP/1.1 200 "));
    // A link that was read over a shoulder.
    let stolen = get(token, "");
    assert!(stolen.starts_with("HTTP/1.1 403 ") && !stolen.contains("set-cookie"), "{stolen}");
    eventually("the agent shows another link", || link(&machine) != first);
    for foreign in ["Origin: http://evil.example\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
        let answer = get("api/board", &format!("{cookie}{foreign}"));
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }
    let named = format!("GET /api/board HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n{cookie}\r\n");
    assert!(raw(address, &named).starts_with("HTTP/1.1 403 "));
    let post = format!(
        "POST /api/waiting/1 HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{cookie}Content-Length: 2\r\n\r\n{{}}"
    );
    assert!(raw(address, &post).starts_with("HTTP/1.1 403 "), "no origin is named");
}

#[test]
fn a_workspace_without_an_agent_is_shown_too_and_only_to_this_machine() {
    let machine = Machine::new();
    machine.put("a.txt", "one\n");
    let refused = machine.aptix(&["review", "--root", "project", "--listen", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("only this machine reaches"));
    crate::processes::write(&machine.path("a.json"), &insert(&[("a.txt", "one\n")], 1, "two"));
    let (applied, code) = json(&machine.aptix(&["apply", "--root", "project", "--json", "a.json"]).output().unwrap());
    assert_eq!(code, Some(0), "{applied}");
    let mut command = machine.aptix(&["review", "--root", "project"]);
    let _page = Running(command.stderr(machine.log("agent.log")).spawn().unwrap());
    let Some(mut browser) = Browser::start() else { return };
    let tab = opened(&machine, &mut browser);
    browser.click(&tab, "#past button");
    browser.until_shown(&tab, "+ two");
    browser.press(&tab, "u");
    browser.until_shown(&tab, "Approve (a)");
    browser.press(&tab, "a");
    eventually("it is taken back", || machine.files() == [("a.txt".to_owned(), "one\n".to_owned())]);
    assert!(!browser.picture(&tab).is_empty());
}
