//! Pictures that people send: what they count as, what a request shows of them, and what is kept of them.

use bailey_kernel::{Context, IMAGE_TOKENS, Instruction, Provider as _, Segment, recall};
use bailey_llm::{Endpoint, Wire, provider};
use bailey_protocol::{IMAGES_BYTES_MAX, Image, Inbound};
use bailey_testkit::{Bench, ModelServer, Setup};
use std::sync::Arc;

/// A JPEG of so many bytes, each this one.
fn image(byte: u8, length: usize) -> Image {
    let mut bytes = b"\xff\xd8\xff".to_vec();
    bytes.resize(length, byte);
    Image::of(bytes).unwrap()
}

async fn shown(bench: &Bench, images: &[Vec<Image>]) -> Context {
    let mut context = Context::new(Instruction::fixed("You are a test."));
    for images in images {
        let inbound = Inbound { text: "look".into(), images: images.clone(), ..Inbound::default() };
        let (_, message, _) = bench.kernel.accept(&bench.connection, inbound).await.unwrap();
        context.push(message);
    }
    context
}

fn codec(bench: &Bench, server: &ModelServer, wire: Wire, takes_images: bool) -> Arc<bailey_llm::Codec> {
    let endpoint = bench.provider(server, wire, 100).endpoint().clone();
    provider(Endpoint { takes_images, ..endpoint })
}

#[tokio::test]
async fn a_picture_counts_as_one_and_not_as_the_letters_it_is_written_in() {
    let server = ModelServer::start(Vec::new());
    let bench = Bench::new(Setup::default()).await;
    // The small one is written as the larger ones begin.
    let images = [image(7, 3), image(7, 900_000), image(7, 900_000), image(9, 90_000)];
    let context = shown(&bench, &images.map(|image| vec![image])).await;
    for wire in Wire::ALL {
        let encoded = codec(&bench, &server, wire, true).encode(&context, &[]);
        let rest = encoded.reads(&context).checked_sub(4 * IMAGE_TOKENS).unwrap();
        assert!(rest < 1_500, "{wire:?}: {rest}");
        assert!(encoded.request.body.0.len() > 1_200_000 * 2);
        // To whom none is shown, none is counted.
        let blind = codec(&bench, &server, wire, false).encode(&context, &[]);
        let reads = blind.reads(&context);
        assert!(reads < 1_500 && blind.request.body.0.len() < 2_000, "{wire:?}: {reads}");
        assert!(blind.request.body.lossy().contains("you take no pictures"));
    }
    let size: u64 = context.segments().iter().map(Segment::tokens).sum();
    assert!((4 * IMAGE_TOKENS..4 * IMAGE_TOKENS + 200).contains(&size), "{size}");
    // What only looks like one is text.
    let empty = Context::new(Instruction::fixed("x"));
    let mut looks = codec(&bench, &server, Wire::Anthropic, true).encode(&empty, &[]);
    looks.request.body = "/9j/".repeat(1_000).as_str().into();
    assert!(looks.reads(&empty) > 1_000);
}

#[tokio::test]
async fn of_too_many_pictures_a_request_shows_the_newest() {
    let server = ModelServer::start(Vec::new());
    let bench = Bench::new(Setup::default()).await;
    for (count, bytes, fit) in [(22_u8, 1_000, 20), (6, 3 << 20, 4)] {
        let images: Vec<Vec<Image>> = (0..count).map(|byte| vec![image(byte, bytes)]).collect();
        let context = shown(&bench, &images).await;
        let body = codec(&bench, &server, Wire::Anthropic, true).encode(&context, &[]).request.body;
        let body = body.lossy();
        for (place, image) in images.iter().flatten().enumerate() {
            let is_old = place < usize::from(count) - fit;
            assert_eq!(body.contains(&image.base64()), !is_old, "{place} of {count}");
        }
        assert_eq!(body.matches("there were too many since").count(), usize::from(count) - fit);
    }
    // Kinds that a wire does not know.
    let gif = Image::of(b"GIF89a".to_vec()).unwrap();
    let context = shown(&bench, &[vec![gif.clone()]]).await;
    for wire in Wire::ALL {
        let body = codec(&bench, &server, wire, true).encode(&context, &[]).request.body;
        let is_shown = !matches!(wire, Wire::Gemini | Wire::Ollama);
        assert_eq!(body.lossy().contains(&gif.base64()), is_shown, "{wire:?}");
    }
}

#[tokio::test]
async fn pictures_stand_in_the_journal_before_their_message_and_come_back() {
    let bench = Bench::new(Setup::default()).await;
    let sent = [vec![image(1, 500), image(2, 700)], Vec::new(), vec![image(3, 900)]];
    let context = shown(&bench, &sent).await;
    let trail = bench.trail().await;
    let said: Vec<&str> = trail.into_iter().filter(|name| ["image", "accepted"].contains(name)).collect();
    assert_eq!(said, ["image", "image", "accepted", "accepted", "image", "accepted"]);
    let entries = bench.entries().await;
    let kept = entries.iter().filter(|it| it.entry.fact.name() == "image");
    let kept: Vec<&[u8]> = kept.map(|it| it.payload.as_deref().unwrap()).collect();
    let all: Vec<&[u8]> = sent.iter().flatten().map(Image::bytes).collect();
    assert_eq!(kept, all);
    let read =
        recall(bench.kernel.journal(), bench.session, Instruction::fixed("You are a test.")).await.unwrap();
    let images = |context: &Context| -> Vec<Vec<Image>> {
        context.segments().iter().map(|segment| segment.images().to_vec()).collect()
    };
    assert_eq!(images(&read), images(&context));
    assert_eq!(images(&read), sent);

    // Together they may not be too large, and nothing is written of what is refused.
    let half = IMAGES_BYTES_MAX / 2;
    let accept = async |images: Vec<Image>| {
        let inbound = Inbound { text: "much".into(), images, ..Inbound::default() };
        bench.kernel.accept(&bench.connection, inbound).await.map(drop)
    };
    let refused = accept(vec![image(1, half), image(2, half + 1)]).await.unwrap_err();
    assert!(refused.to_string().contains("3 MiB"), "{refused}");
    assert_eq!(bench.entries().await.len(), entries.len());
    accept(vec![image(1, half), image(2, half)]).await.unwrap();
}
