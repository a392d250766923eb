//! OWASP CRS 4 in the engine and in the interpreter, with requests of its regression tests.

use std::collections::HashMap;
use std::sync::Arc;

use weir_waf::inspection::Mode;
use weir_waf::plan::{Settings, View};
use weir_waf::seclang::parse;

use crate::compare::{
    Exchange, Outcome, by_engine, by_engine_in_turns, by_engine_that_knows, by_interpreter,
    difference,
};
use crate::interpreter::{Program, Words};
use crate::support::answer::Answer;
use crate::support::ftw::Stage;
use crate::support::{SETTINGS, data, ftw};
use crate::turns::SHORTEST;

/// Number of compared requests.
const REQUESTS: usize = 300;

#[test]
fn engine_and_interpreter_agree_on_crs() {
    let (Some(rules), Some(paths), Some(tests)) = (data::rules(), data::paths(), data::tests())
    else {
        return;
    };
    let program = program(&paths);
    let stages = ftw::read(&tests);
    let every = (stages.len() / REQUESTS).max(1);
    let mut held = 0;
    for level in ["1", "4"] {
        let settings: Vec<(String, String)> = SETTINGS
            .iter()
            .map(|(name, value)| {
                (*name, if name.ends_with("paranoia_level") { level } else { value })
            })
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let of_view = Settings { variables: settings.clone() };
        let view = Arc::new(View::new(Arc::clone(&rules), &of_view).expect("a view"));
        let plain = Arc::new(View::plain(Arc::clone(&rules), &of_view));
        // Each mode uses different requests, so that more requests are compared.
        for (offset, mode) in [(0, Mode::Detect), (every / 2, Mode::Block)] {
            let chosen = stages.iter().skip(offset).step_by(every * 2);
            for stage in chosen.filter(|stage| !has_file(stage)) {
                held += compared(&program, &settings, [&view, &plain], mode, stage).held.len();
            }
        }
    }
    assert!(held > REQUESTS, "{held} rules held");
}

/// Whether a request may have a file. The interpreter does not read the contents of files.
fn has_file(stage: &Stage) -> bool {
    memchr::memmem::find(&stage.request.body, b"filename").is_some()
}

fn program(paths: &[std::path::PathBuf]) -> Program {
    let mut directives = Vec::new();
    let mut files = HashMap::new();
    for path in paths {
        let name = path.to_string_lossy();
        let text = String::from_utf8_lossy(&std::fs::read(path).expect("a rule file")).into_owned();
        directives.extend(parse(&name, &text).expect("directives"));
        let folder = path.parent().expect("a folder");
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|it| it == "data") {
                let words = || Words::of_file(&std::fs::read(&path).expect("words"));
                files.entry(path.to_string_lossy().into_owned()).or_insert_with(words);
            }
        }
    }
    Program::new(&directives, files)
}

fn compared(
    program: &Program,
    settings: &[(String, String)],
    views: [&Arc<View>; 2],
    mode: Mode,
    stage: &Stage,
) -> Outcome {
    let sent = &stage.request;
    let headers: Vec<(&[u8], &[u8])> =
        sent.headers.iter().map(|(name, value)| (name.as_slice(), value.as_slice())).collect();
    let answer = Answer::to(stage);
    let answered: Vec<(&[u8], &[u8])> =
        answer.headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    let exchange = Exchange {
        method: &sent.method,
        target: &sent.target,
        protocol: &sent.protocol,
        headers: &headers,
        body: &sent.body,
        status: answer.status,
        answer_headers: &answered,
        answer: &answer.body,
    };
    let expected = by_interpreter(program, settings, mode, &exchange);
    for view in views {
        let outcome = by_engine(view, mode, &exchange, &program.names);
        if let Some(what) = difference(&expected, &outcome, &program.unordered) {
            panic!("{} in {mode:?}, {} rules: {what}", stage.name, view.rules_count());
        }
    }
    let outcome = by_engine_in_turns(views[0], mode, &exchange, &program.names, SHORTEST);
    if let Some(what) = difference(&expected, &outcome, &program.unordered) {
        panic!("{} in {mode:?}, in turns: {what}", stage.name);
    }
    let outcome = by_engine_that_knows(views[0], mode, &exchange, &program.names);
    if let Some(what) = difference(&expected, &outcome, &program.unordered) {
        panic!("{} in {mode:?}, with texts that were learned: {what}", stage.name);
    }
    expected
}
