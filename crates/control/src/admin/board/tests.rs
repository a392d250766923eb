use serde_json::{Value, json};

use super::super::testing::Running;
use super::*;

const MEMBERS: [&str; 2] = ["127.0.0.1:9001", "127.0.0.1:9002"];

fn whole(running: &Running, wanted: &BoardQuery) -> (Value, Value) {
    let sample = Arc::new(Sample::of(running.observed.judge(), None));
    let work = (
        Arc::clone(&running.observed),
        Arc::new(BoardQuery { rows: 50, page: 1, ..copy(wanted) }),
        sample,
    );
    let (event, document) = make(work, None).expect("an event");
    let Event::Whole(whole) = event else { panic!("the first event is whole") };
    (serde_json::to_value(&*whole).expect("JSON"), document)
}

fn copy(wanted: &BoardQuery) -> BoardQuery {
    BoardQuery {
        view: wanted.view.clone(),
        name: wanted.name.clone(),
        words: wanted.words.clone(),
        page: wanted.page,
        rows: wanted.rows,
    }
}

fn view(view: &str, name: &str) -> BoardQuery {
    BoardQuery { view: view.into(), name: name.into(), ..BoardQuery::default() }
}

#[tokio::test]
async fn each_view_has_what_it_shows_and_nothing_else() {
    let running = Running::on_unix(&MEMBERS).await;
    let schema = running.get("/v1/openapi.json").await.1;
    let mut schema_of_whole = schema["components"]["schemas"]["DashboardWhole"].clone();
    assert!(schema_of_whole.is_object(), "{schema}");
    schema_of_whole["components"] = schema["components"].clone();
    let validator = jsonschema::draft202012::new(&schema_of_whole).expect("a schema");
    let server = running.observed.table().virtual_servers[0].name.to_string();
    for (name, wanted) in [
        ("overview", view("overview", "")),
        ("servers", view("servers", "")),
        ("server", view("server", &server)),
        ("pools", view("pools", "")),
        ("pool", view("pool", "web")),
        ("map", view("map", "")),
    ] {
        let (whole, document) = whole(&running, &wanted);
        let errors: Vec<String> = validator.iter_errors(&whole).map(|it| it.to_string()).collect();
        assert_eq!(errors, [""; 0], "{name}");
        let keys: Vec<&String> = document.as_object().expect("a map").keys().collect();
        assert_eq!(keys, ["process", name]);
    }
    let (_, document) = whole(&running, &view("pool", "web"));
    assert_eq!(document["pool"]["list"]["order"], json!(MEMBERS));
    assert_eq!(
        document["pool"]["marks"][0],
        json!({ "member": MEMBERS[0], "state": "up", "shown": "good" })
    );
    let (_, document) = whole(&running, &view("server", "none"));
    assert!(document.get("server").is_none());
}

#[tokio::test]
async fn what_changes_comes_and_nothing_else() {
    let running = Running::on_unix(&MEMBERS).await;
    let wanted = view("pools", "");
    let (_, before) = whole(&running, &wanted);
    let change = |before: Value| {
        let sample = Arc::new(Sample::of(running.observed.judge(), None));
        let wanted = Arc::new(BoardQuery { rows: 50, page: 1, ..copy(&wanted) });
        let (event, document) =
            make((Arc::clone(&running.observed), wanted, sample), Some(before)).expect("an event");
        let Event::Change(change) = event else { panic!("it is a change") };
        (change.patch, document)
    };
    let (patch, before) = change(before);
    assert_eq!(patch, json!({}));
    let member = Arc::clone(&running.observed.table().pools[0].members[0]);
    member.set_health(weir_core::monitor::Health::Down, 1);
    let (patch, _) = change(before);
    let web = &patch["pools"]["items"]["web"];
    assert_eq!((&web["state"], &web["members_in_service"]), (&json!("degraded"), &json!(1)));
    assert_eq!(patch["pools"].as_object().map(serde_json::Map::len), Some(1), "{patch}");
}

#[tokio::test]
async fn the_stream_begins_with_the_whole_document_and_goes_on() {
    let running = Running::on_unix(&MEMBERS).await;
    let answer = running.send("GET", "/v1/dashboard?view=overview", "", "").await;
    assert_eq!((answer.status, answer.field("content-type")), (200, Some("text/event-stream")));
    for (path, status) in [
        ("/v1/dashboard?view=nothing", 400),
        ("/v1/dashboard?rows=1000", 400),
        ("/v1/dashboard?page=0", 400),
    ] {
        assert_eq!(running.send("GET", path, "", "").await.status, status, "{path}");
    }
    for (path, detail, help) in [
        ("view=pool&name=wep", "there is no pool `wep`", "did you mean `web`?"),
        ("view=pool&name=nope", "there is no pool `nope`", "available: `web`"),
        ("view=pool", "there is no pool ``", "available: `web`"),
        ("view=server&name=nope", "there is no virtual server `nope`", "available: "),
        ("view=server", "there is no virtual server ``", "available: "),
    ] {
        let answer = running.send("GET", &format!("/v1/dashboard?{path}"), "", "").await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(answer.field("content-type"), Some("application/problem+json"), "{path}");
        let problem: Value = serde_json::from_str(&answer.text).expect("JSON");
        assert_eq!(problem["detail"], detail);
        assert!(problem["help"].as_str().expect("help").starts_with(help), "{problem}");
    }
    let wanted = Arc::new(BoardQuery { rows: 50, page: 1, ..view("overview", "") });
    let shared = Arc::clone(&running.observed);
    let mut samples = running.observed.admin.sampler.subscribe(move || shared.judge());
    samples.changed().await.expect("a sample");
    let sample = samples.borrow().clone().expect("it is there");
    assert!(make((Arc::clone(&running.observed), wanted, sample), None).is_some());
}
