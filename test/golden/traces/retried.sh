# POST http://shop.example/cart?access_token=<redacted>&q=alert(2) → 200 in 146.769 ms · route cart · won over "everything": longer path, after 2 retries
# Redacted in the trace: set SECRET_AUTHORIZATION, SECRET_ACCESS_TOKEN before you run this.
# The body is the one that was sent to the backend.
curl --include \
  --connect-to '::127.0.0.1:3077' \
  --header 'user-agent: curl/7.88.1' \
  --header 'accept: */*' \
  --header 'authorization: '"${SECRET_AUTHORIZATION:?}" \
  --header 'content-type: application/json' \
  --header 'x-debug: 1<script>alert(4)</script>' \
  --data-raw '{"a":"</pre><script>alert(3)</script>"}' \
  --url 'http://shop.example/cart?access_token='"${SECRET_ACCESS_TOKEN:?}"'&q=alert(2)'
