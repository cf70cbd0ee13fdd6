// Tomcat, Jetty and the JDK's own server. Each prints its port, and its answers say in X-Read what an application finds.
import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;

public class Readers {
  static String quoted(String text) {
    if (text == null) return "null";
    StringBuilder out = new StringBuilder("\"");
    for (char c : text.toCharArray())
      out.append(c < 0x20 || c > 0x7e || c == '"' || c == '\\' ? String.format("\\u%04x", (int) c) : c);
    return out.append('"').toString();
  }

  static String read(String path, String query, String cookie, String header, String method) {
    return String.format("{\"path\":%s,\"query\":%s,\"cookie\":%s,\"header\":%s,\"method\":%s}",
        quoted(path), quoted(query), quoted(cookie), quoted(header), quoted(method));
  }

  // HttpServlet runs doGet for HEAD, too.
  public static class TomcatServlet extends jakarta.servlet.http.HttpServlet {
    @Override
    protected void doGet(jakarta.servlet.http.HttpServletRequest request, jakarta.servlet.http.HttpServletResponse response) {
      String session = null;
      if (request.getCookies() != null) {
        for (var cookie : request.getCookies())
          if (session == null && cookie.getName().equals("session_id")) session = cookie.getValue();
      }
      response.setHeader("X-Read",
          read(request.getPathInfo(), request.getParameter("api_key"), session, request.getHeader("X-API-Key"), "GET"));
    }
  }

  public static class JettyServlet extends javax.servlet.http.HttpServlet {
    @Override
    protected void doGet(javax.servlet.http.HttpServletRequest request, javax.servlet.http.HttpServletResponse response) {
      String session = null;
      if (request.getCookies() != null) {
        for (var cookie : request.getCookies())
          if (session == null && cookie.getName().equals("session_id")) session = cookie.getValue();
      }
      response.setHeader("X-Read",
          read(request.getPathInfo(), request.getParameter("api_key"), session, request.getHeader("X-API-Key"), "GET"));
    }
  }

  static int startTomcat(Path folder) throws Exception {
    var tomcat = new org.apache.catalina.startup.Tomcat();
    tomcat.setBaseDir(folder.toString());
    tomcat.setPort(0);
    tomcat.getConnector().setProperty("address", "127.0.0.1");
    var context = tomcat.addContext("", null);
    org.apache.catalina.startup.Tomcat.addServlet(context, "reader", new TomcatServlet());
    context.addServletMappingDecoded("/*", "reader");
    tomcat.start();
    return tomcat.getConnector().getLocalPort();
  }

  static int startJetty() throws Exception {
    var server = new org.eclipse.jetty.server.Server(new InetSocketAddress("127.0.0.1", 0));
    var context = new org.eclipse.jetty.servlet.ServletContextHandler();
    context.addServlet(new org.eclipse.jetty.servlet.ServletHolder(new JettyServlet()), "/*");
    server.setHandler(context);
    server.start();
    return ((org.eclipse.jetty.server.ServerConnector) server.getConnectors()[0]).getLocalPort();
  }

  static int startJdk() throws Exception {
    var server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.createContext("/", exchange -> {
      exchange.getResponseHeaders().set("X-Read",
          read(exchange.getRequestURI().getPath(), null, null, exchange.getRequestHeaders().getFirst("X-API-Key"), exchange.getRequestMethod()));
      exchange.sendResponseHeaders(200, -1);
    });
    server.start();
    return server.getAddress().getPort();
  }

  public static void main(String[] arguments) throws Exception {
    System.out.println(startTomcat(Path.of(arguments[0])) + " " + startJetty() + " " + startJdk());
  }
}
