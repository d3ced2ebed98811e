//! Reads a request's method and path. Nothing here may serve to decide about permissions.

use crate::ask::{View, Wish};
use bailey_protocol::{ApprovalId, SessionId};
use hyper::Method;

/// The kinds of requests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Whether the server answers. It tells nothing else, and needs no bearer.
    Health,
    /// A request for a bearer; the code is in the body.
    Login,
    /// A wish that the path holds in full.
    Wish(Wish),
    /// The events of a session, after this line of a run of its process.
    Events(SessionId, Option<After>),
    /// An op for the session of a stream; in the body.
    Op(String),
    /// An [`crate::Act`]; in the body.
    Act,
    /// A new session; in the body.
    Begin,
    /// A message for the channel of this name; in the body.
    Hook(String),
}

/// The last line that a page has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct After {
    pub(crate) run: String,
    pub(crate) line: u64,
}

/// Reads a request's line. `None` if nothing is there, or if the method does not fit.
pub(crate) fn read(method: &Method, path: &str, query: Option<&str>) -> Option<Route> {
    let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
    Some(match (method, &parts[..]) {
        (&(Method::GET | Method::HEAD), ["healthz"]) => Route::Health,
        (&Method::GET, ["metrics"]) => Route::Wish(Wish::Metrics),
        (&Method::POST, ["api", "login"]) => Route::Login,
        (&Method::POST, ["api", "logout"]) => Route::Wish(Wish::Logout),
        (&Method::POST, ["api", "do"]) => Route::Act,
        (&Method::POST, ["api", "sessions"]) => Route::Begin,
        (&Method::POST, ["hooks", name]) => Route::Hook((*name).to_owned()),
        (&Method::GET, ["api", "sessions", id, "events"]) => {
            Route::Events(SessionId::parse(id)?, query.and_then(after))
        }
        (&Method::GET, ["api", "sessions", id]) => see(View::Session(SessionId::parse(id)?)),
        (&Method::GET, ["api", "sessions", id, "spent"]) => see(View::Spent(SessionId::parse(id)?)),
        (&Method::GET, ["api", "approvals", id]) => see(View::Approval(ApprovalId::parse(id)?)),
        (&Method::POST, ["api", "streams", id]) => Route::Op((*id).to_owned()),
        (&Method::GET, ["api", name]) => see(view(name)?),
        _ => return None,
    })
}

fn see(view: View) -> Route {
    Route::Wish(Wish::See(view))
}

fn view(name: &str) -> Option<View> {
    Some(match name {
        "status" => View::Status,
        "sessions" => View::Sessions,
        "approvals" => View::Approvals,
        "rules" => View::Rules,
        "audit" => View::Audit,
        "verify" => View::Verify,
        "schedules" => View::Schedules,
        "budget" => View::Budget,
        "settings" => View::Settings,
        "logs" => View::Logs,
        "models" => View::Models,
        "trusted" => View::Trusted,
        "tools" => View::Tools,
        "walls" => View::Walls,
        "people" => View::People,
        "browsers" => View::Browsers,
        _ => return None,
    })
}

/// `run=…&line=…`, in this order.
fn after(query: &str) -> Option<After> {
    let (run, line) = query.strip_prefix("run=")?.split_once("&line=")?;
    Some(After { run: run.to_owned(), line: line.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::{After, Route, read};
    use crate::ask::{View, Wish};
    use bailey_protocol::SessionId;
    use hyper::Method;

    #[test]
    fn a_request_is_one_thing_or_nothing() {
        let id = SessionId::new(1, [7; 10]);
        let get = |path: &str| read(&Method::GET, path, None);
        assert_eq!(get("/healthz"), Some(Route::Health));
        assert_eq!(read(&Method::HEAD, "/healthz", None), Some(Route::Health));
        assert_eq!(read(&Method::HEAD, "/api/budget", None), None);
        assert_eq!(get("/api/budget"), Some(Route::Wish(Wish::See(View::Budget))));
        assert_eq!(get(&format!("/api/sessions/{id}")), Some(Route::Wish(Wish::See(View::Session(id)))));
        assert_eq!(
            read(&Method::GET, &format!("/api/sessions/{id}/events"), Some("run=a1&line=12")),
            Some(Route::Events(id, Some(After { run: "a1".into(), line: 12 })))
        );
        for path in
            ["", "api", "/api", "/api/", "/api/login", "/api/nothing", "/api/sessions/..", "//", "/api/do"]
        {
            assert_eq!(get(path), None, "{path}");
        }
        assert_eq!(read(&Method::POST, "/api/budget", None), None);
        assert_eq!(read(&Method::DELETE, "/api/do", None), None);
    }
}
