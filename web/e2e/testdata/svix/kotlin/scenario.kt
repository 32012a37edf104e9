// The scenario of svix_test.go with Svix's library for Kotlin, as it comes from Maven. It takes the host alone from the
// server's URL, and sends every payload raw.
import com.svix.kotlin.*
import com.svix.kotlin.exceptions.ApiException
import com.svix.kotlin.exceptions.WebhookVerificationException
import com.svix.kotlin.models.*
import java.net.URI
import java.net.URLEncoder
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpResponse
import kotlin.system.exitProcess
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking

const val SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
const val OTHER = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
val receiver: String = System.getenv("SVIX_RECEIVER")
val name: String = System.getenv("SVIX_NAME")
val svix = Svix(System.getenv("SVIX_TOKEN"), SvixOptions(System.getenv("SVIX_URL")))

fun ctl(path: String): HttpResponse<String> {
    val r = HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create("$receiver/ctl/$path")).build(), HttpResponse.BodyHandlers.ofString())
    check(r.statusCode() == 200) { "$path: ${r.body()}" }
    return r
}

fun await(path: String, text: String) = ctl("wait/$name$path?has=" + URLEncoder.encode(text, "UTF-8"))

fun verifies(key: String, r: HttpResponse<String>) =
    try { Webhook(key).verify(r.body(), r.headers()); true } catch (e: WebhookVerificationException) { false }

fun header(r: HttpResponse<String>, of: String) = r.headers().firstValue(of).orElse("")

suspend fun send(type: String, marker: String, channels: Set<String>? = null) =
    svix.message.create(name, MessageIn(eventType = name + type, payload = """{"marker":"$marker"}""", channels = channels)).id

suspend fun scenario() {
    svix.application.create(ApplicationIn(name = "Kotlin", uid = name, metadata = mapOf("plan" to "gold"), throttleRate = 90u))
    val a = svix.application.get(name)
    check(a.metadata["plan"] == "gold" && a.throttleRate == 90.toUShort()) { "an application is kept" }
    check(svix.application.list().data.isNotEmpty()) { "applications are listed" }
    for (t in listOf(".done", ".later")) svix.eventType.create(EventTypeIn(name = name + t, description = "a type"))
    val endpoint = svix.endpoint.create(name, EndpointIn(url = "$receiver/$name/a", secret = SECRET, filterTypes = setOf("$name.done"))).id
    check(svix.endpoint.getSecret(name, endpoint).key == SECRET) { "the secret is the given one" }

    val plain = send(".done", "plain")
    var r = await("/a", "plain")
    check(verifies(SECRET, r) && !verifies(OTHER, r) && header(r, "svix-id") == plain) { "a message arrives and verifies" }
    // What messageInRaw makes. Its own result cannot be serialized by this line of the library.
    val headers = mapOf("headers" to mapOf("content-type" to "text/plain"))
    svix.message.create(name, MessageIn(eventType = "$name.done", payload = "marker=raw", transformationsParams = headers))
    r = await("/a", "marker=raw")
    check(r.body() == "marker=raw" && header(r, "was-content-type") == "text/plain" && verifies(SECRET, r)) { "a raw payload arrives" }

    ctl("status/503/$name/b")
    val b = svix.endpoint.create(name, EndpointIn(url = "$receiver/$name/b", channels = setOf("b"))).id
    send(".done", "fails", setOf("b"))
    await("/b", "fails")
    while (svix.messageAttempt.listByEndpoint(name, b, MessageAttemptListByEndpointOptions(status = MessageStatus.FAIL)).data.isEmpty()) delay(50)
    // No resend: this library fails before it makes the request ("method POST must have a request body").

    val later = send(".later", "later")
    val ids = svix.message.list(name, MessageListOptions(eventTypes = setOf("$name.done", "$name.later"))).data.map { it.id }
    check(plain in ids && later in ids) { "messages of two types are listed" }
    svix.endpoint.rotateSecret(name, endpoint, EndpointSecretRotateIn(key = OTHER))
    // A worker that has read the endpoint before the rotation can sign with the old secret a moment longer.
    var i = 0
    while (!verifies(OTHER, r)) {
        val marker = "rotated-${i++}-"
        send(".done", marker)
        r = await("/a", marker)
    }
    check(verifies(SECRET, r)) { "both secrets verify while they overlap" }
    check(svix.endpoint.sendExample(name, endpoint, EventExampleIn(eventType = "$name.done")).id != "") { "an example has an id" }
    svix.application.delete(name)
    val code = try { svix.application.get(name); 0 } catch (e: ApiException) { e.statusCode }
    check(code == 404) { "a deleted application is 404: $code" }
}

fun main(): Unit = runBlocking {
    try {
        scenario()
    } catch (e: ApiException) {
        System.err.println(e)
        throw e
    }
    println("scenario done")
    exitProcess(0)
}
