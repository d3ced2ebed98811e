//! A conversation in frames: one question at a time, each with a number that its answer repeats.

use crate::{
    desk::{ENDED, Failed, FailureKind},
    frame::{FrameError, Frames, Object, answer, frame, ready},
    speech::{Speech, Spoken},
};
use bailey_sandbox::Streams;
use serde_json::Value;
use std::{collections::BTreeSet, time::Duration};
use tokio::time::{Instant, timeout_at};

/// A conversation with a program that said that it is ready.
pub(crate) struct Framed {
    streams: Streams,
    frames: Frames,
    /// The number of the newest question.
    number: u64,
    /// Questions whose answers are not waited for any more.
    late: BTreeSet<u64>,
}

impl From<FrameError> for Failed {
    fn from(error: FrameError) -> Self {
        Self { fault: FailureKind::Garbled, told: error.to_string() }
    }
}

impl Framed {
    /// Reads the first frame.
    pub(crate) async fn begin(streams: Streams, speech: &Speech) -> Result<Self, Failed> {
        let mut begun = Self { streams, frames: Frames::default(), number: 0, late: BTreeSet::new() };
        loop {
            if let Some(json) = begun.frames.next()? {
                speech.begin(&ready(&json)?)?;
                return Ok(begun);
            }
            begun.more().await?;
        }
    }

    pub(crate) async fn exchange(
        &mut self,
        mut question: Object,
        within: Duration,
        speech: &Speech,
    ) -> Result<Spoken, Failed> {
        self.number += 1;
        let number = self.number;
        question.insert("number".into(), Value::from(number));
        let too_long = || Failed { fault: FailureKind::TooLong, told: "the question is too long".into() };
        let frame = frame(&question).ok_or_else(too_long)?;
        self.hear_unasked(speech)?;
        let until = Instant::now() + within;
        match timeout_at(until, self.streams.write(&frame)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(Failed::crashed(ENDED)),
            // It has a part of the question, which is no whole frame: nothing more can be asked.
            Err(_) => return Err(Failed::crashed("it did not read the question")),
        }
        match timeout_at(until, self.answer(number, speech)).await {
            Ok(answer) => answer,
            Err(_) => {
                self.late.insert(number);
                Err(Failed::late(within))
            }
        }
    }

    /// Reads the frames since the last answer. Each may only answer a question that the program was late
    /// with.
    fn hear_unasked(&mut self, speech: &Speech) -> Result<(), Failed> {
        loop {
            while let Some(json) = self.frames.next()? {
                let (number, object) = answer(&json, speech.form())?;
                speech.answer(&object)?;
                self.drop_late(number)?;
            }
            match self.streams.read_now(&mut self.frames.bytes) {
                None => return Ok(()),
                Some(true) => {}
                Some(false) => return Err(Failed::crashed(ENDED)),
            }
        }
    }

    async fn answer(&mut self, asked: u64, speech: &Speech) -> Result<Spoken, Failed> {
        loop {
            while let Some(json) = self.frames.next()? {
                let (number, object) = answer(&json, speech.form())?;
                let said = speech.answer(&object)?;
                if number == asked {
                    return Ok(said);
                }
                self.drop_late(number)?;
            }
            self.more().await?;
        }
    }

    fn drop_late(&mut self, number: u64) -> Result<(), Failed> {
        match self.late.remove(&number) {
            true => Ok(()),
            false => Err(FrameError::Unasked(number).into()),
        }
    }

    async fn more(&mut self) -> Result<(), Failed> {
        match self.streams.read(&mut self.frames.bytes).await {
            true => Ok(()),
            false => Err(Failed::crashed(ENDED)),
        }
    }
}
