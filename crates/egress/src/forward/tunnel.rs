//! What is no exchange of messages any more: a protocol that was switched to, and a tunnel that nobody looks
//! into.

use super::{
    Inner, Passed,
    body::{self, Answered, Counted},
    headers::{end_to_end, keep_upgrade},
    limits::Meter,
    notes::Broken,
};
use crate::config::Origin;
use hyper::{Response, StatusCode, Uri, body::Incoming, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use std::sync::atomic::Ordering;
use tokio::{
    io::{AsyncRead, AsyncWrite, copy_bidirectional},
    sync::oneshot,
    time::timeout,
};
use tower_service::Service as _;

impl Inner {
    /// Both sides speak something else now, such as WebSocket: bytes pass either way until one side is done.
    pub(super) async fn switched(
        &self,
        mut came: Response<Incoming>,
        upgrade: Option<OnUpgrade>,
        answer: oneshot::Sender<Response<Answered>>,
        (out, back): (Meter, Meter),
    ) -> Result<(), Broken> {
        let upgrade = upgrade.ok_or("the server switches to a protocol that nobody asked for")?;
        let theirs = hyper::upgrade::on(&mut came);
        let mut told = Response::new(body::text(String::new()));
        *told.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *told.headers_mut() = end_to_end(came.headers());
        keep_upgrade(came.headers(), told.headers_mut());
        answer.send(told).map_err(|_| Broken::Gone(""))?;
        let theirs = theirs.await.map_err(|error| error.to_string())?;
        pass(upgrade, Counted::new(TokioIo::new(theirs), out, back)).await
    }

    /// A connection to a server that the owner lets commands speak with unheard.
    pub(super) async fn connect(
        &self,
        to: Uri,
        upgrade: Option<OnUpgrade>,
        answer: oneshot::Sender<Response<Answered>>,
        passed: &Passed,
        (out, back): (Meter, Meter),
    ) -> Result<(), Broken> {
        let origin = Origin::of(&to).filter(|origin| self.tunnels.names(origin));
        let origin = origin.ok_or("its owner opened no tunnel there")?;
        let upgrade = upgrade.ok_or("what asks for a tunnel cannot become one")?;
        let theirs = timeout(self.config.connect_timeout, self.dial.clone().call(to)).await;
        let theirs = theirs.map_err(|_| format!("`{origin}` could not be reached in time"))?;
        let theirs = theirs.map_err(|error| error.to_string())?;
        passed.sent.store(true, Ordering::Relaxed);
        passed.status.store(StatusCode::OK.as_u16(), Ordering::Relaxed);
        answer.send(Response::new(body::text(String::new()))).map_err(|_| Broken::Gone(""))?;
        pass(upgrade, Counted::new(theirs.into_inner(), out, back)).await
    }
}

async fn pass<T: AsyncRead + AsyncWrite + Unpin>(
    upgrade: OnUpgrade,
    mut theirs: Counted<T>,
) -> Result<(), Broken> {
    let ours = upgrade.await.map_err(|error| error.to_string())?;
    let copied = copy_bidirectional(&mut TokioIo::new(ours), &mut theirs).await;
    copied.map(drop).map_err(|error| format!("the connection broke: {error}").into())
}
