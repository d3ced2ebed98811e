//! Models that stand in for one that is down.

use crate::support::{hands, table};
use bailey_agent::{Brain as _, Loop, ModelRole, Models, Route, TurnEnd};
use bailey_journal::Fact;
use bailey_kernel::{ModelErrorKind, Provider, Refused};
use bailey_llm::{Endpoint, Wire, provider};
use bailey_protocol::{Happening, Kind};
use bailey_testkit::{Bench, ModelServer, Reply, Setup};
use serde_json::json;
use std::sync::Arc;

/// A rule that keeps every context from the server at this host.
const NOT_LOCALHOST: &str = r#"
[[rule]]
name = "not-there"
answer = "deny"
reason = "this context stays here"
match = { action = "model", host = "localhost" }
"#;

fn named(name: &str, url: &str) -> Arc<dyn Provider> {
    provider(Endpoint {
        provider: name.into(),
        wire: Wire::Anthropic,
        base_url: url.into(),
        model: "m".into(),
        key: None,
        max_tokens: 100,
        window_tokens: None,
        prices: Vec::new(),
        takes_images: false,
        parameters: std::collections::BTreeMap::new(),
    })
}

fn busy() -> Reply {
    Reply::error(529, "overloaded_error", "busy")
}

/// Both servers, a bench that may reach them, and the second one's URL under the name `localhost`.
async fn two(
    rules: &str,
    second: impl IntoIterator<Item = Reply>,
) -> (ModelServer, ModelServer, Bench, String) {
    let down = ModelServer::always(busy());
    let up = ModelServer::start(second);
    let by_name = up.base_url().replace("127.0.0.1", "localhost");
    let mut setup = Setup::default().rule(rules).model(&down);
    setup.models.push(by_name.clone());
    (down, up, Bench::new(setup).await, by_name)
}

#[tokio::test]
async fn a_stand_in_is_asked_and_decided_anew_and_stays_for_the_turn() {
    let read = Reply::calls([("c1", "fs_read", json!({ "path": "a.txt" }))]);
    let (down, up, mut bench, url) = two("", [read, Reply::text("done")]).await;
    let (scope, mut context) = bench.context("please do it").await;
    let mut hands = hands(&bench, &down, Wire::Anthropic, scope);
    let route = Route::new(named("first", &down.base_url()), [named("second", &url)]);
    hands.models = Models::new(route);
    assert_eq!(Loop::default().turn(&hands, &mut context).await.unwrap(), TurnEnd::Answered);
    assert_eq!(
        (down.requests().len(), up.requests().len()),
        (3, 2),
        "three attempts, then the other for the turn"
    );
    let models: Vec<String> = bench
        .facts("intent")
        .await
        .into_iter()
        .filter_map(|fact| match fact {
            Fact::Intent { kind: Kind::Model, target, reserved, .. } => {
                assert!(reserved.tokens > 0, "each attempt reserves");
                Some(target)
            }
            _ => None,
        })
        .collect();
    assert_eq!(models, ["first/m", "first/m", "first/m", "second/m", "second/m"]);
    let told = |event: &Happening| matches!(event, Happening::Notice { text } if text.contains("asking `second/m` instead"));
    assert_eq!(bench.happened().iter().filter(|event| told(event)).count(), 1);
    assert_eq!(
        hands.models.afresh().route(ModelRole::Main).current().unwrap().name(),
        "first",
        "the next turn begins anew"
    );
}

#[tokio::test]
async fn the_gate_keeps_a_context_from_a_stand_in() {
    let (down, up, mut bench, url) = two(NOT_LOCALHOST, [Reply::text("done")]).await;
    let (scope, mut context) = bench.context("please do it").await;
    let mut hands = hands(&bench, &down, Wire::Anthropic, scope);
    hands.models = Models::new(Route::new(named("first", &down.base_url()), [named("second", &url)]));
    let error = Loop::default().turn(&hands, &mut context).await.unwrap_err();
    assert!(matches!(error, Refused::Model(error) if error.kind == ModelErrorKind::Overloaded(None)));
    assert_eq!(up.requests().len(), 0);
    let notices: Vec<String> = bench
        .happened()
        .into_iter()
        .filter_map(|event| match event {
            Happening::Notice { text } => Some(text),
            _ => None,
        })
        .collect();
    let told = |text: &String| text.contains("may not be asked instead") && text.contains("stays here");
    assert!(notices.iter().any(told), "{notices:#?}");
}

#[tokio::test]
async fn nobody_stands_in_for_a_wrong_key_or_where_nobody_is_named() {
    let down = ModelServer::always(Reply::error(401, "authentication_error", "no"));
    let up = ModelServer::always(Reply::text("done"));
    let bench = Bench::new(Setup::default().model(&down).model(&up)).await;
    let (scope, context) = bench.context("please do it").await;
    let mut hands = hands(&bench, &down, Wire::Anthropic, scope);
    hands.models =
        Models::new(Route::new(named("first", &down.base_url()), [named("second", &up.base_url())]));
    assert!(hands.converse(&context).await.is_err());
    assert_eq!(up.requests().len(), 0);
    let mut alone = table([busy(), busy(), busy()]).await;
    assert!(alone.turn().await.is_err());
}

#[tokio::test]
async fn a_role_and_a_skill_have_models_of_their_own() {
    let (main, small, skilled) = (
        ModelServer::always(Reply::text("main")),
        ModelServer::always(Reply::text("small")),
        ModelServer::always(Reply::text("skilled")),
    );
    let bench = Bench::new(Setup::default().model(&main).model(&small).model(&skilled)).await;
    let (scope, context) = bench.context("please do it").await;
    let mut hands = hands(&bench, &main, Wire::Anthropic, scope);
    let route = |name: &str, server: &ModelServer| Route::new(named(name, &server.base_url()), []);
    hands.models = Models::new(route("main", &main))
        .with_role(ModelRole::Summary, route("small", &small))
        .with_skill("review", route("skilled", &skilled));
    let text = async |hands: &bailey_agent::Hands, role| {
        hands.ask(role, &context, &[]).await.unwrap().answer().text.clone()
    };
    assert_eq!(text(&hands, ModelRole::Main).await, "main");
    assert_eq!(text(&hands, ModelRole::Summary).await, "small");
    assert_eq!(text(&hands, ModelRole::Planner).await, "main");
    hands.models = hands.models.for_skill("review");
    assert_eq!(text(&hands, ModelRole::Main).await, "skilled");
    assert_eq!(text(&hands, ModelRole::Summary).await, "skilled");
}
