// The scenario of svix_test.go with Svix's library for Rust, as it comes from its registry.
use std::collections::{BTreeMap, BTreeSet};
use std::env::var;
use std::error::Error;
use std::io::{Read, Write};
use std::time::Duration;

use http::{HeaderMap, HeaderName};
use svix::api::*;
use svix::models::*;
use svix::webhooks::Webhook;

const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const OTHER: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
type Res<T> = Result<T, Box<dyn Error>>;

struct World {
    svix: Svix,
    receiver: String,
    name: String,
}

struct Request {
    headers: HeaderMap,
    body: String,
}

fn check(yes: bool, what: &str) -> Res<()> {
    if yes { Ok(()) } else { Err(format!("not so: {what}").into()) }
}

fn set(of: &[String]) -> Option<BTreeSet<String>> {
    Some(of.iter().cloned().collect())
}

fn verifies(key: &str, r: &Request) -> bool {
    Webhook::new(key).unwrap().verify(r.body.as_bytes(), &r.headers).is_ok()
}

fn header(r: &Request, name: &str) -> String {
    r.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("").into()
}

impl World {
    // ctl asks the receiver of the test, over a connection of its own.
    fn ctl(&self, path: &str) -> Res<Request> {
        let host = self.receiver.trim_start_matches("http://");
        let mut c = std::net::TcpStream::connect(host)?;
        write!(c, "GET /ctl/{path} HTTP/1.0\r\nHost: {host}\r\n\r\n")?;
        let mut text = String::new();
        c.read_to_string(&mut text)?;
        let (head, body) = text.split_once("\r\n\r\n").ok_or("no head")?;
        let mut lines = head.lines();
        check(lines.next().unwrap_or("").contains(" 200 "), &format!("{path}: {body}"))?;
        let mut headers = HeaderMap::new();
        for (name, value) in lines.filter_map(|l| l.split_once(": ")) {
            headers.insert(HeaderName::try_from(name.to_lowercase())?, value.parse()?);
        }
        Ok(Request { headers, body: body.into() })
    }

    fn wait(&self, path: &str, text: &str) -> Res<Request> {
        self.ctl(&format!("wait/{}{path}?has={text}", self.name))
    }

    async fn send(&self, of: &str, marker: &str, channel: Option<&str>) -> Res<String> {
        let mut m = MessageIn::new(self.name.clone() + of, serde_json::json!({ "marker": marker }));
        m.channels = channel.and_then(|c| set(&[c.to_string()]));
        Ok(self.svix.message().create(self.name.clone(), m, None).await?.id)
    }
}

async fn scenario(w: &World) -> Res<()> {
    let (s, name) = (&w.svix, || w.name.clone());
    let (done, later) = (name() + ".done", name() + ".later");
    let plan = BTreeMap::from([("plan".to_string(), "gold".to_string())]);
    let app = ApplicationIn { uid: Some(name()), metadata: Some(plan.clone()), throttle_rate: Some(90), ..ApplicationIn::new("Rust".into()) };
    s.application().create(app, None).await?;
    let app = s.application().get(name()).await?;
    check(app.metadata == plan && app.throttle_rate == Some(90), "an application is kept")?;
    check(!s.application().list(None).await?.data.is_empty(), "applications are listed")?;
    for t in [&done, &later] {
        s.event_type().create(EventTypeIn::new(t.clone(), "a type".into()), None).await?;
    }
    let e = EndpointIn { secret: Some(SECRET.into()), event_types: set(&[done.clone()]), ..EndpointIn::new(format!("{}/{}/a", w.receiver, w.name)) };
    let endpoint = s.endpoint().create(name(), e, None).await?.id;
    check(s.endpoint().get_secret(name(), endpoint.clone()).await?.key == SECRET, "the secret is the given one")?;

    let plain = w.send(".done", "plain", None).await?;
    let r = w.wait("/a", "plain")?;
    check(verifies(SECRET, &r) && !verifies(OTHER, &r) && header(&r, "svix-id") == plain, "a message arrives and verifies")?;
    let raw = MessageIn::new_raw_payload(done.clone(), "marker=raw".into()).with_content_type("text/plain".into());
    s.message().create(name(), raw, None).await?;
    let mut r = w.wait("/a", "marker%3Draw")?;
    check(r.body == "marker=raw" && header(&r, "was-content-type") == "text/plain" && verifies(SECRET, &r), "a raw payload arrives")?;

    w.ctl(&format!("status/503/{}/b", w.name))?;
    let e = EndpointIn { channels: set(&["b".to_string()]), ..EndpointIn::new(format!("{}/{}/b", w.receiver, w.name)) };
    let b = s.endpoint().create(name(), e, None).await?.id;
    let failing = w.send(".done", "fails", Some("b")).await?;
    w.wait("/b", "fails")?;
    loop {
        let failed = MessageAttemptListByEndpointOptions { status: Some(MessageStatus::Fail), ..Default::default() };
        if !s.message_attempt().list_by_endpoint(name(), b.clone(), Some(failed)).await?.data.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    w.ctl(&format!("status/200/{}/b", w.name))?;
    s.message_attempt().resend(name(), failing, b, None).await?;
    w.ctl(&format!("delivered/{}/b", w.name))?;

    let id = w.send(".later", "later", None).await?;
    let two = MessageListOptions { event_types: Some(vec![done.clone(), later.clone()].into_iter().collect()), ..Default::default() };
    let ids: Vec<String> = s.message().list(name(), Some(two)).await?.data.into_iter().map(|m| m.id).collect();
    check(ids.contains(&plain) && ids.contains(&id), "messages of two types are listed")?;
    let key = EndpointSecretRotateIn { key: Some(OTHER.into()), ..Default::default() };
    s.endpoint().rotate_secret(name(), endpoint.clone(), key, None).await?;
    // A worker that has read the endpoint before the rotation can sign with the old secret a moment longer.
    for i in 0.. {
        if verifies(OTHER, &r) {
            break;
        }
        let marker = format!("rotated-{i}-");
        w.send(".done", &marker, None).await?;
        r = w.wait("/a", &marker)?;
    }
    check(verifies(SECRET, &r), "both secrets verify while they overlap")?;
    let example = s.endpoint().send_example(name(), endpoint, EventExampleIn::new(done), None).await?;
    check(!example.id.is_empty(), "an example has an id")?;
    s.application().delete(name()).await?;
    match s.application().get(name()).await {
        Err(svix::error::Error::Http(e)) if e.status.as_u16() == 404 => Ok(()),
        other => Err(format!("a deleted application is 404: {other:?}").into()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let options = SvixOptions { server_url: var("SVIX_URL").ok(), ..Default::default() };
    let w = World { svix: Svix::new(var("SVIX_TOKEN").unwrap(), Some(options)), receiver: var("SVIX_RECEIVER").unwrap(), name: var("SVIX_NAME").unwrap() };
    if let Err(e) = scenario(&w).await {
        eprintln!("{e:?}");
        std::process::exit(1);
    }
    println!("scenario done");
}
