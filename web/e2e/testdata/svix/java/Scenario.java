// The scenario of svix_test.go with Svix's library for Java, as it comes from Maven. It takes the host alone from the
// server's URL, and sends every payload raw.
import com.svix.*;
import com.svix.api.*;
import com.svix.exceptions.ApiException;
import com.svix.exceptions.WebhookVerificationException;
import com.svix.models.*;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.*;
import java.nio.charset.StandardCharsets;
import java.util.*;

public class Scenario {
  static final String SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", OTHER = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  static final String RECEIVER = System.getenv("SVIX_RECEIVER"), NAME = System.getenv("SVIX_NAME");
  static Svix svix;

  static void check(boolean yes, String what) {
    if (!yes) throw new IllegalStateException("not so: " + what);
  }

  static HttpResponse<String> ctl(String path) throws Exception {
    HttpRequest r = HttpRequest.newBuilder(URI.create(RECEIVER + "/ctl/" + path)).build();
    HttpResponse<String> res = HttpClient.newHttpClient().send(r, HttpResponse.BodyHandlers.ofString());
    check(res.statusCode() == 200, path + ": " + res.body());
    return res;
  }

  static HttpResponse<String> await(String path, String text) throws Exception {
    return ctl("wait/" + NAME + path + "?has=" + URLEncoder.encode(text, StandardCharsets.UTF_8));
  }

  static boolean verifies(String key, HttpResponse<String> r) throws Exception {
    try {
      new Webhook(key).verify(r.body(), r.headers().map());
      return true;
    } catch (WebhookVerificationException e) {
      return false;
    }
  }

  static String header(HttpResponse<String> r, String name) { return r.headers().firstValue(name).orElse(""); }

  static String send(String type, String marker, String... channels) throws Exception {
    MessageIn m = new MessageIn().eventType(NAME + type).payload("{\"marker\":\"" + marker + "\"}");
    if (channels.length > 0) m = m.channels(Set.of(channels));
    return svix.getMessage().create(NAME, m).getId();
  }

  public static void main(String[] args) throws Exception {
    try {
      scenario();
    } catch (ApiException e) {
      System.err.println(e.getCode() + " " + e.getResponseBody());
      throw e;
    }
    System.out.println("scenario done");
    System.exit(0);
  }

  static void scenario() throws Exception {
    SvixOptions o = new SvixOptions();
    o.setServerUrl(System.getenv("SVIX_URL"));
    svix = new Svix(System.getenv("SVIX_TOKEN"), o);
    svix.getApplication().create(new ApplicationIn().name("Java").uid(NAME).metadata(Map.of("plan", "gold")).throttleRate(90L));
    ApplicationOut a = svix.getApplication().get(NAME);
    check("gold".equals(a.getMetadata().get("plan")) && Long.valueOf(90).equals(a.getThrottleRate()), "an application is kept");
    check(svix.getApplication().list().getData().size() > 0, "applications are listed");
    for (String t : List.of(".done", ".later")) svix.getEventType().create(new EventTypeIn().name(NAME + t).description("a type"));
    EndpointIn in = new EndpointIn().url(URI.create(RECEIVER + "/" + NAME + "/a")).secret(SECRET).filterTypes(Set.of(NAME + ".done"));
    String endpoint = svix.getEndpoint().create(NAME, in).getId();
    check(svix.getEndpoint().getSecret(NAME, endpoint).getKey().equals(SECRET), "the secret is the given one");

    String plain = send(".done", "plain");
    HttpResponse<String> r = await("/a", "plain");
    check(verifies(SECRET, r) && !verifies(OTHER, r) && header(r, "svix-id").equals(plain), "a message arrives and verifies");
    svix.getMessage().create(NAME, Message.messageInRaw("marker=raw", "text/plain").eventType(NAME + ".done"));
    r = await("/a", "marker=raw");
    check(r.body().equals("marker=raw") && header(r, "was-content-type").equals("text/plain") && verifies(SECRET, r), "a raw payload arrives");

    ctl("status/503/" + NAME + "/b");
    String b = svix.getEndpoint().create(NAME, new EndpointIn().url(URI.create(RECEIVER + "/" + NAME + "/b")).channels(Set.of("b"))).getId();
    send(".done", "fails", "b");
    await("/b", "fails");
    MessageAttemptListByEndpointOptions failed = new MessageAttemptListByEndpointOptions();
    failed.setStatus(MessageStatus.FAIL);
    while (svix.getMessageAttempt().listByEndpoint(NAME, b, failed).getData().isEmpty()) Thread.sleep(50);
    // No resend: this library fails before it makes the request ("method POST must have a request body").

    String later = send(".later", "later");
    MessageListOptions two = new MessageListOptions();
    two.setEventTypes(new LinkedHashSet<>(List.of(NAME + ".done", NAME + ".later")));
    List<String> ids = svix.getMessage().list(NAME, two).getData().stream().map(MessageOut::getId).toList();
    check(ids.contains(plain) && ids.contains(later), "messages of two types are listed");
    svix.getEndpoint().rotateSecret(NAME, endpoint, new EndpointSecretRotateIn().key(OTHER));
    // A worker that has read the endpoint before the rotation can sign with the old secret a moment longer.
    for (int i = 0; !verifies(OTHER, r); i++) {
      String marker = "rotated-" + i + "-";
      send(".done", marker);
      r = await("/a", marker);
    }
    check(verifies(SECRET, r), "both secrets verify while they overlap");
    check(svix.getEndpoint().sendExample(NAME, endpoint, new EventExampleIn().eventType(NAME + ".done")).getId() != null, "an example has an id");
    svix.getApplication().delete(NAME);
    try {
      svix.getApplication().get(NAME);
      check(false, "a deleted application is an error");
    } catch (ApiException e) {
      check(e.getCode() == 404, "it is 404");
    }
  }
}
