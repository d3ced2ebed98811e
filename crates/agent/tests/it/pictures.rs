//! Pictures of the workspace that the model reads.

use crate::{restore::restore, support::hands};
use bailey_agent::{Brain as _, Loop, Models, TurnEnd};
use bailey_kernel::{Context, Segment};
use bailey_llm::{Endpoint, Wire, provider};
use bailey_protocol::Image;
use bailey_testkit::{Bench, ModelServer, Reply, Setup};
use serde_json::json;

const SECRET: &str = "hunter2-Zq9!xv7Lm";

/// A picture with these bytes behind its head.
fn png(rest: &str) -> Vec<u8> {
    [b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x02\x80\0\0\x01\xe0\x08".as_slice(), rest.as_bytes()].concat()
}

fn shown(context: &Context) -> usize {
    context.segments().iter().map(|segment| segment.images().len()).sum()
}

/// The request behind the result of a read of this picture, and the pictures
/// in the context before and after a restart.
async fn read(wire: Wire, takes_images: bool, picture: &[u8]) -> (String, usize, usize) {
    let read = || Reply::calls([("c1", "fs_read", json!({ "path": "shot.png" }))]);
    let server = ModelServer::start([read(), Reply::text("I see.")]);
    let secrets = vec![("TEST_TOKEN".into(), SECRET.into())];
    let bench = Bench::new(Setup { secrets, ..Setup::default() }.model(&server)).await;
    bench.world.put("shot.png", picture);
    let (scope, mut context) = bench.context("look at shot.png").await;
    let mut hands = hands(&bench, &server, wire, scope);
    let endpoint = bench.provider(&server, wire, 1000).endpoint().clone();
    hands.models = Models::only(provider(Endpoint { takes_images, ..endpoint }));
    assert_eq!(Loop::default().turn(&hands, &mut context).await.unwrap(), TurnEnd::Answered, "{wire:?}");
    let result = context.segments().iter().find_map(|segment| match segment {
        Segment::Observation(seen) => Some(seen.text().to_owned()),
        _ => None,
    });
    assert!(result.unwrap().contains("640×480"), "{wire:?}");
    let sent = server.requests().last().unwrap().body.clone();
    (sent, shown(&context), shown(&restore(&bench).await))
}

#[tokio::test]
async fn a_picture_that_was_read_is_shown_to_a_model_that_takes_pictures() {
    let picture = png("pixels");
    let base64 = Image::of(picture.clone()).unwrap().base64();
    for wire in Wire::ALL {
        let (sent, now, restored) = read(wire, true, &picture).await;
        assert!(sent.contains(&base64), "{wire:?}: {sent}");
        assert_eq!((now, restored), (1, 1), "{wire:?}");
        let (sent, ..) = read(wire, false, &picture).await;
        assert!(!sent.contains(&base64), "{wire:?}: {sent}");
        assert!(sent.contains("not shown: you take no pictures"), "{wire:?}: {sent}");
    }
}

/// A picture may hold text, and so a secret that Bailey knows. Such a picture is
/// not shown. The control is the test above.
#[tokio::test]
async fn a_picture_with_a_known_secret_in_it_is_not_shown() {
    let picture = png(&format!("tEXt {SECRET} pixels"));
    let base64 = Image::of(picture.clone()).unwrap().base64();
    let (sent, now, restored) = read(Wire::Anthropic, true, &picture).await;
    assert!(!sent.contains(&base64) && !sent.contains(SECRET), "{sent}");
    assert_eq!((now, restored), (0, 0));
}
