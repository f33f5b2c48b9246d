//! A browser without a screen, driven over the pipe of its debugging protocol.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::processes::eventually;
use crate::skip::skip;

/// A browser, which ends with this.
pub(crate) struct Browser {
    process: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    asked: u64,
    _profile: TempDir,
}

/// One of its tabs.
#[derive(Clone)]
pub(crate) struct Tab(String);

impl Browser {
    /// Starts one; `None` where there is none.
    pub(crate) fn start() -> Option<Self> {
        if Command::new("chromium").arg("--version").output().is_err() {
            skip("chromium is not installed, so the review page was not tried in a browser");
            return None;
        }
        let profile = tempfile::tempdir().unwrap();
        // The protocol is spoken over the descriptors 3 and 4.
        let options = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --window-size=1200,900 --remote-debugging-pipe";
        let command = format!("exec chromium {options} --user-data-dir=\"$0\" 3<&0 4>&1 </dev/null >/dev/null 2>&1");
        let mut process = Command::new("sh");
        process.arg("-c").arg(command).arg(profile.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = process.spawn().unwrap();
        let (commands, answers) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        Some(Self { process, commands, answers, asked: 0, _profile: profile })
    }

    /// Calls a method, in a tab or in the browser itself.
    #[track_caller]
    fn call(&mut self, tab: Option<&Tab>, method: &str, params: &Value) -> Value {
        self.called(tab, method, params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn called(&mut self, tab: Option<&Tab>, method: &str, params: &Value) -> Result<Value, Value> {
        self.asked += 1;
        let mut message = json!({"id": self.asked, "method": method, "params": params});
        if let Some(Tab(session)) = tab {
            message["sessionId"] = json!(session);
        }
        self.commands.write_all(format!("{message}\0").as_bytes()).unwrap();
        self.commands.flush().unwrap();
        loop {
            let mut bytes = Vec::new();
            self.answers.read_until(0, &mut bytes).unwrap();
            assert!(bytes.pop().is_some(), "the browser ended");
            let mut answer: Value = serde_json::from_slice(&bytes).unwrap();
            if answer["id"] == json!(self.asked) {
                return if answer["error"].is_null() {
                    Ok(answer["result"].take())
                } else {
                    Err(answer["error"].take())
                };
            }
        }
    }

    /// Opens a page in a new tab.
    pub(crate) fn open(&mut self, url: &str) -> Tab {
        let target = self.call(None, "Target.createTarget", &json!({"url": url}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = self.call(None, "Target.attachToTarget", &attach);
        Tab(attached["sessionId"].as_str().unwrap().to_owned())
    }

    /// What an expression comes to in a tab.
    #[track_caller]
    pub(crate) fn eval(&mut self, tab: &Tab, expression: &str) -> Value {
        self.evaluated(tab, expression).unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    /// The same; an error while the tab is on its way to another page, too.
    fn evaluated(&mut self, tab: &Tab, expression: &str) -> Result<Value, Value> {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.called(Some(tab), "Runtime.evaluate", &params)?;
        if answer["exceptionDetails"].is_null() { Ok(answer["result"]["value"].take()) } else { Err(answer) }
    }

    /// Waits until an expression holds.
    #[track_caller]
    pub(crate) fn until(&mut self, tab: &Tab, expression: &str) {
        let last = self.evaluated(tab, "document.body?.innerText ?? ''");
        let what = format!("{expression}, after {last:?}");
        eventually(&what, || self.evaluated(tab, expression) == Ok(json!(true)));
    }

    /// Waits until this is shown.
    #[track_caller]
    pub(crate) fn until_shown(&mut self, tab: &Tab, text: &str) {
        self.until(tab, &format!("document.body?.innerText.includes({}) ?? false", json!(text)));
    }

    /// What a tab shows.
    #[track_caller]
    pub(crate) fn text(&mut self, tab: &Tab) -> String {
        self.eval(tab, "document.body?.innerText ?? ''").as_str().unwrap().to_owned()
    }

    /// Presses a key.
    pub(crate) fn press(&mut self, tab: &Tab, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { key } else { "" };
            self.call(Some(tab), "Input.dispatchKeyEvent", &json!({"type": kind, "key": key, "text": text}));
        }
    }

    /// Types a text where the keyboard is.
    pub(crate) fn write(&mut self, tab: &Tab, text: &str) {
        self.call(Some(tab), "Input.insertText", &json!({"text": text}));
    }

    /// Presses a button once it is there.
    #[track_caller]
    pub(crate) fn click(&mut self, tab: &Tab, selector: &str) {
        let click = "found => { found?.click(); return found !== null; }";
        self.until(tab, &format!("({click})(document.querySelector({}))", json!(selector)));
    }

    /// A picture of a tab, in base64, as the protocol has it.
    pub(crate) fn picture(&mut self, tab: &Tab) -> String {
        let picture = self.call(Some(tab), "Page.captureScreenshot", &json!({"format": "png"}));
        picture["data"].as_str().unwrap().to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
